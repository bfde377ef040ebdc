"""Runs rendered for people."""
