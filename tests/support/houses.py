"""A house as the process that it is in a pod, on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from proctor.adapters.clickhouse.endpoint import Endpoint
from support.mounted import ADMIN, ADMIN_PASSWORD, ANCHOR, DATASET_PASSWORD

_PLACES = 32
_READY_SECONDS = 90


@dataclass
class House:
    """A house's process; started again, it has the same ports.

    Attributes:
        directory: where it keeps everything.
        ports: of results, control, and the first dataset.
    """

    directory: Path
    ports: tuple[int, int, int]
    process: subprocess.Popen[bytes] | None = None
    logs: list[bytes] = field(default_factory=list)

    @property
    def results(self) -> Endpoint:
        return Endpoint("127.0.0.1", self.ports[0], ADMIN, ADMIN_PASSWORD)

    def agent(self, served: Mapping[str, Any], user: str) -> Endpoint:
        return Endpoint("127.0.0.1", served["port"], user, DATASET_PASSWORD, served["database"])

    def control(self, password: str = ADMIN_PASSWORD) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.ports[1]}",
            headers={"authorization": f"Bearer {password}"},
            timeout=120,
            trust_env=False,
        )

    def start(self) -> None:
        """Start it; returns once results can be kept."""
        environment = {
            "PATH": os.environ["PATH"],
            "PROCTOR_ADMIN_USER": ADMIN,
            "PROCTOR_ADMIN_PASSWORD": ADMIN_PASSWORD,
            "PROCTOR_HOUSE_DIR": str(self.directory),
            "PROCTOR_HOUSE_LISTEN": "127.0.0.1",
            "PROCTOR_HOUSE_PORTS": ",".join(map(str, self.ports)),
        }
        log = (self.directory.parent / "house.log").open("ab")
        self.process = subprocess.Popen([sys.executable, "-m", "proctor.local.house"], env=environment, stderr=log)
        log.close()
        until = time.monotonic() + _READY_SECONDS
        while not self.is_ready():
            assert self.process.poll() is None, (self.directory.parent / "house.log").read_text()
            assert time.monotonic() < until, "the house did not open"
            time.sleep(0.1)

    def is_ready(self) -> bool:
        try:
            with self.control() as client:
                return client.get("/healthz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def seed(self, recipe: str, *, answer: str | None = None, **fields: Any) -> dict[str, Any]:
        """Seed a dataset; return the last line."""
        body = {"scenario": "everything", "recipe": recipe, "seed": 42, "anchor": ANCHOR, "volume": "1", **fields}
        if answer is not None:
            body["answer"] = answer
        with self.control() as client:
            lines = client.post("/datasets", json=body).text.splitlines()
        return dict(json.loads(lines[-1]))

    def serve(self, dataset: str, user: str, **fields: Any) -> httpx.Response:
        """Ask for a dataset to be served."""
        body = {"hash": dataset, "user": user, "password": DATASET_PASSWORD, "until": "2099-01-01T00:00:00Z", **fields}
        with self.control() as client:
            return client.post("/served", json=body)


@contextmanager
def keep_house(directory: Path) -> Iterator[House]:
    """Start a house; it is gone on leaving."""
    house = House(directory / "house", find_ports())
    house.start()
    try:
        yield house
    finally:
        if house.process is not None and house.process.poll() is None:
            house.end()


def find_ports() -> tuple[int, int, int]:
    """Return ports that nobody has: a row of them for datasets, below the range from which the kernel gives."""
    for first in range(20_000, 30_000, _PLACES + 2):
        if all(_is_free(port) for port in range(first, first + 4)):
            return first, first + 1, first + 2
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
