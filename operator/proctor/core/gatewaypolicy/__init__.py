"""What may pass the gateway, decided on plain values."""
