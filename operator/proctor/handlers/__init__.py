"""The operator's skin over kopf."""
