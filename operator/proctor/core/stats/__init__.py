"""Estimates, intervals, paired differences, and the verdict that follows."""
