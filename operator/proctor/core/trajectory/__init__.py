"""The ordered record of one attempt, and how it ended."""
