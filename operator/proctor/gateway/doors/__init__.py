"""What an attempt, or the operator, can ask of the gateway: one module per door."""
