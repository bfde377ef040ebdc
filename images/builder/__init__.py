"""Builds the images of `images/`, once per content, and loads them into a cluster that has no registry."""
