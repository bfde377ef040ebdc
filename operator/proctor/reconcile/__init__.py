"""Observe, decide, plan: what happens next, as a pure function."""
