"""One run's children on Kubernetes: observed for every pass, and changed by what it decides."""
