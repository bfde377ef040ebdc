"""What stops an image from being built or loaded, said in one line."""

from __future__ import annotations


class ImageError(Exception):
    """An image can't be built or loaded; the message says what to do."""
