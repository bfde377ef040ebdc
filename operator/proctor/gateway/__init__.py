"""The only door of a sandbox: models, tools, brief and answer, all recorded."""
