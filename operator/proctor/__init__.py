"""Proctor: did this change make the agent that uses an MCP server better or worse?"""

import os

# What else is installed beside Proctor must not change how a manifest is read; and looking through all installed
# packages for plugins takes a tenth of a command's start.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
