"""The canary: tries what no sandbox may reach, and says what happened.

    python -m proctor_agent.canary --open IP:PORT [--closed IP:PORT] [--closed udp:IP:PORT] …

It runs where an agent would, before any agent does: in a pod of its own, and in each sandbox just before its agent.
It looks again and again until what has to answer answers and all else is closed, several times in a row: some engines
enforce a policy only a second or two after a pod has started. Refused and not answered both count as closed. What
was seen last goes to where Kubernetes reads a container's last words, as JSON.

Options:
    --open: what has to answer as a gateway does.
    --closed: what must not be reachable: by TCP, or a name server by UDP.
    --seconds: how long it looks; then it says what is wrong, and ends with 1.
    --times: how often in a row all has to be as it should be.
    --count: up to how many processes it starts, where nothing says how many there may be.
    --report: a file for the last words.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

from proctor_agent.failures import EXIT_USAGE

EXIT_WRONG = 1

_REPORT = "/dev/termination-log"
_MAX_TARGETS = 64
"""Their last words have to fit into 4 KiB."""
_TRY_SECONDS = 1.0
_PAUSE_SECONDS = 0.2
_MAX_PORT = 65535

_HELLO = b"GET /healthz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n"
_NAME_QUERY = b"\0\1\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1"
_PID_LIMITS = ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")


class Usage(Exception):  # noqa: N818 - says what it is about
    """The command line is wrong."""


class Target:
    """Something to try.

    Args:
        text: ``IP:port`` for TCP, ``udp:IP:port`` for a name server.
        says: what has to be said before it answers; nothing if to be connected is enough.

    Raises:
        Usage: the text has neither form.
    """

    def __init__(self, text: str, says: bytes = b"") -> None:
        self.text = text
        by_datagram = text.startswith("udp:")
        host, _, port = text.removeprefix("udp:").rpartition(":")
        self._host = host.removeprefix("[").removesuffix("]")
        self._family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        self._kind = socket.SOCK_DGRAM if by_datagram else socket.SOCK_STREAM
        self._says = _NAME_QUERY if by_datagram else says
        if not (port.isascii() and port.isdecimal() and 0 < int(port) <= _MAX_PORT):
            raise Usage(f"{text!r} has no port")
        self._port = int(port)
        try:
            socket.inet_pton(self._family, self._host)
        except OSError as e:
            raise Usage(f"{text!r} is not an IP address and a port: a sandbox looks up no names") from e

    def answers(self) -> bool:
        """Tell whether somebody is there."""
        with socket.socket(self._family, self._kind) as connection:
            connection.settimeout(_TRY_SECONDS)
            try:
                connection.connect((self._host, self._port))
                if not self._says:
                    return True
                connection.sendall(self._says)
                return bool(connection.recv(1))
            except OSError:
                return False


class Arguments:
    """The command line, read."""

    def __init__(self, words: list[str]) -> None:
        self.open: list[Target] = []
        self.closed: list[Target] = []
        self.seconds = 30.0
        self.times = 3
        self.count = 0
        self.report = _REPORT
        for option, value in zip(words[::2], [*words[1::2], ""], strict=False):
            self._take(option, value)
        if not self.open or len(self.open) + len(self.closed) > _MAX_TARGETS:
            raise Usage(f"give --open, and no more than {_MAX_TARGETS} targets in all")

    def _take(self, option: str, value: str) -> None:
        match option:
            case "--open":
                self.open.append(Target(value, _HELLO))
            case "--closed":
                self.closed.append(Target(value))
            case "--seconds" | "--times" | "--count" if value.isascii() and value.isdecimal():
                setattr(self, option.removeprefix("--"), int(value))
            case "--report" if value:
                self.report = value
            case _:
                raise Usage(f"{option} {value!r} is not understood")


class Round:
    """One look at everything, all at once.

    Attributes:
        answered: target → whether it answered.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self.answered: dict[str, bool] = {}
        threads = [
            threading.Thread(target=self._try, args=(target,)) for target in (*arguments.open, *arguments.closed)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _try(self, target: Target) -> None:
        self.answered[target.text] = target.answers()

    @property
    def is_right(self) -> bool:
        """Whether all is as it should be."""
        opened = all(self.answered[target.text] for target in self._arguments.open)
        return opened and not any(self.answered[target.text] for target in self._arguments.closed)

    def words(self) -> str:
        """Return what was seen, as JSON."""
        found = {text: "open" if answered else "closed" for text, answered in self.answered.items()}
        report = {
            "allowed": {target.text: found[target.text] for target in self._arguments.open},
            "forbidden": {target.text: found[target.text] for target in self._arguments.closed},
            "pidsMax": read_pid_limit() or count_processes(self._arguments.count),
        }
        return json.dumps(report, separators=(",", ":"))


def read_pid_limit(places: tuple[str, ...] = _PID_LIMITS) -> int | None:
    """Return how many processes there may be; None if nothing says so, or there is no limit."""
    for place in places:
        try:
            with open(place, encoding="ascii") as file:  # noqa: PTH123 - pathlib loads slowly
                text = file.read().strip()
        except (OSError, UnicodeDecodeError):
            continue
        return int(text) if text.isdecimal() else None
    return None


def count_processes(most: int) -> int | None:
    """Return how many processes there can be, by starting them; None if `most` are no problem.

    The limit of a pod is set on its control group, of which a container sees only its own part, without a limit.
    Threads count as processes do, and take less.
    """
    gate = threading.Event()
    threads: list[threading.Thread] = []
    try:
        while len(threads) < most:
            thread = threading.Thread(target=gate.wait)
            thread.start()
            threads.append(thread)
    except RuntimeError:
        return len(threads) + 1
    finally:
        gate.set()
        for thread in threads:
            thread.join()
    return None


def look(arguments: Arguments) -> Round:
    """Look until all was as it should be as often as asked, or the time is over; return the last look."""
    until = time.monotonic() + arguments.seconds
    in_a_row = 0
    while True:
        last = Round(arguments)
        in_a_row = in_a_row + 1 if last.is_right else 0
        if in_a_row >= arguments.times or time.monotonic() >= until:
            return last
        time.sleep(_PAUSE_SECONDS)


def main(words: list[str]) -> int:
    """Look, write the last words, and return the exit code."""
    try:
        arguments = Arguments(words)
    except Usage as e:
        print(f"canary: {e}")
        return EXIT_USAGE
    last = look(arguments)
    said = last.words()
    print(said)
    try:
        with open(arguments.report, "w", encoding="ascii") as file:  # noqa: PTH123 - as above
            file.write(said)
    except OSError as e:
        print(f"canary: {arguments.report}: {e.strerror}")
    return 0 if last.is_right else EXIT_WRONG


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
