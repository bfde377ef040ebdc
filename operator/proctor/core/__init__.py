"""Everything that needs no I/O: plain synchronous code over values."""
