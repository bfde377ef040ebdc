"""What a house is told by its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proctor.errors import InvalidInput
from proctor.local.engine import EngineLimits, Known

USER_VARIABLE, PASSWORD_VARIABLE = "PROCTOR_ADMIN_USER", "PROCTOR_ADMIN_PASSWORD"
DIR_VARIABLE = "PROCTOR_HOUSE_DIR"
LISTEN_VARIABLE = "PROCTOR_HOUSE_LISTEN"
MEMORY_VARIABLE = "PROCTOR_ENGINE_MEMORY"
PORTS_VARIABLE = "PROCTOR_HOUSE_PORTS"

_LEAST_PASSWORD = 16
_LEAST_MEMORY = 256 << 20
_PORTS = "8123,8124,8200"
_PLACES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseSettings:
    """Where a house keeps things, and where it listens.

    Attributes:
        admin: who may do everything.
        directory: where everything is kept.
        listen: the address on which control and engines listen.
        results_port: of the results engine.
        control_port: of the control doors.
        first_port: of the places at which datasets are served, which follow one another.
        count: how many places there are.
        limits: of each engine.
    """

    admin: Known = field(repr=False)
    directory: Path
    listen: str = "0.0.0.0"  # noqa: S104 - a pod's own address is not known before it runs; policies guard it
    results_port: int = 8123
    control_port: int = 8124
    first_port: int = 8200
    count: int = _PLACES
    limits: EngineLimits = field(default_factory=EngineLimits)

    @property
    def places(self) -> range:
        """The ports at which datasets are served."""
        return range(self.first_port, self.first_port + self.count)


def read_settings(environ: Mapping[str, str] = os.environ) -> HouseSettings:
    """Return the settings.

    Raises:
        InvalidInput: one is missing or can't be used; never repeats the password.
    """
    ports = [_parse(PORTS_VARIABLE, port) for port in environ.get(PORTS_VARIABLE, _PORTS).split(",")]
    if len(ports) != len(_PORTS.split(",")) or not all(0 < port < (1 << 16) - _PLACES for port in ports):
        raise InvalidInput(f"{PORTS_VARIABLE}: write three ports: results, control, first dataset; like {_PORTS}")
    memory = _parse(MEMORY_VARIABLE, environ.get(MEMORY_VARIABLE, str(2 << 30)))
    if memory < _LEAST_MEMORY:
        raise InvalidInput(f"{MEMORY_VARIABLE}: at least {_LEAST_MEMORY} bytes")
    results, control, first = ports
    return HouseSettings(
        admin=_read_admin(environ),
        directory=Path(environ.get(DIR_VARIABLE, "/var/lib/proctor")),
        listen=environ.get(LISTEN_VARIABLE, "0.0.0.0"),  # noqa: S104 - as above
        results_port=results,
        control_port=control,
        first_port=first,
        limits=EngineLimits(memory_bytes=memory),
    )


def _read_admin(environ: Mapping[str, str]) -> Known:
    user, password = environ.get(USER_VARIABLE, ""), environ.get(PASSWORD_VARIABLE, "")
    if len(password) < _LEAST_PASSWORD or not password.isprintable():
        raise InvalidInput(f"{PASSWORD_VARIABLE}: give at least {_LEAST_PASSWORD} printable characters")
    try:
        return Known.with_password(user, password)
    except ValueError as error:
        raise InvalidInput(f"{USER_VARIABLE}: {error}") from error


def _parse(variable: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise InvalidInput(f"{variable}: not a whole number")
    return int(text)
