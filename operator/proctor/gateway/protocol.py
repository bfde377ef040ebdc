"""HTTP/1.1 as the gateway takes it: each connection knows through which socket it came."""

from __future__ import annotations

from uvicorn.protocols.http.h11_impl import H11Protocol

CONTROL_SOURCE = "control"
TCP_SOURCE = "tcp"
"""No attempt's opaque id is equal to one of these: ids are 20 hex digits."""


class GatewayProtocol(H11Protocol):
    """uvicorn's strict parser; `scope["state"]["source"]` names the socket of the connection."""
