"""What runs inside a sandbox: standard library only, nothing of `proctor`."""
