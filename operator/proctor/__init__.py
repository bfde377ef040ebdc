"""Proctor: did this change make the agent that uses an MCP server better or worse?"""
