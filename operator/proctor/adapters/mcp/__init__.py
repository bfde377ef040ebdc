"""MCP servers under test: over stdio, TCP or HTTP."""
