"""Kubernetes objects, built by pure functions as plain dicts."""
