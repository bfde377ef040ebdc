"""A scenario folder as typed, closed, bounded models."""
