"""Where requests with a key may go: hosts that were allowed by whoever runs Proctor, not by who writes suites."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from proctor.errors import InvalidInput

_DEFAULT_PORTS = {"https": 443, "http": 80}


def check_provider_url(url: str, allowed_hosts: Iterable[str]) -> str:
    """Return a base URL without its trailing slash.

    Raises:
        InvalidInput: its host is not allowed, or the key would travel in the clear.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    try:
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        port = 0
    if not host or not port or parts.username is not None or parts.query or parts.fragment:
        raise InvalidInput(f"baseUrl {url!r}: not plain https://host[:port][/path]")
    allowed = {entry.lower() for entry in allowed_hosts}
    named = f"[{host}]" if ":" in host else host
    if not {named, f"{named}:{port}"} & allowed:
        raise InvalidInput(
            f"baseUrl {url!r}: host {named}:{port} is not allowed to get a key: add --allow-host {named}"
        )
    if parts.scheme != "https" and not _is_loopback(host):
        raise InvalidInput(f"baseUrl {url!r}: the key would travel in the clear: use https")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
