"""Files that are written from the types: CRDs and the reference."""
