"""Bubblewrap: processes that see only what they are given."""
