"""The verdict and the report over HTTP."""
