"""Wiring: one module per process builds what that process needs."""
