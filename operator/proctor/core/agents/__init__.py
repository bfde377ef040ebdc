"""The neutral prompt, and scripted models as pure functions of a conversation."""
