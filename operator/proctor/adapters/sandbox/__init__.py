"""Bubblewrap: processes that see only what they are given.

`agent_spec` / `server_spec` say what is started; `launch` / `launch_server` start it; `forward_unix_to_tcp` is the way
to a dataset's engine; `sandbox_available` says why nothing can be started here.
"""
