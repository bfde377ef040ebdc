"""One machine instead of a cluster: the same decisions, carried out by processes."""
