"""Model providers, spoken to in the Anthropic Messages API."""
