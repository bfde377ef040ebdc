"""A way out of a sandbox that has no network, and the command that uses it. One file, so that it can be mounted alone.

    forward.py [--gate FD] [--connect PORT PATH]... [--serve FD PORT]... -- COMMAND [ARGUMENT...]

--gate FD          wait for one byte on FD; its end without one means that whoever started this is gone: exit 125
--connect PORT PATH  whoever connects to 127.0.0.1:PORT in here is connected to the Unix socket PATH
--serve FD PORT    whoever connects to the listening socket FD is connected to 127.0.0.1:PORT in here

The command gets TERM, INT and HUP that this process gets. Its exit code is this process's; 128 + N for signal N;
127 if it can't be run. This process keeps none of the command's standard input and output open.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType

EXIT_GATE = 125
EXIT_USAGE = 64
EXIT_NOT_FOUND = 127

_PIECE_BYTES = 64 * 1024
_BACKLOG = 128
_FIRST_OPEN_FD = 3
_MAX_FD = 4096
_STANDARD_FDS = (0, 1)

Dial = Callable[[], socket.socket]


class Usage(Exception):  # noqa: N818 - says what is wrong, like the word on a usage line
    """The arguments make no sense."""


class Arguments:
    """The command line.

    Args:
        words: all arguments.

    Raises:
        Usage: they make no sense.
    """

    def __init__(self, words: list[str]) -> None:
        self.gate: int | None = None
        self.connects: list[tuple[int, str]] = []
        self.serves: list[tuple[int, int]] = []
        rest = iter(words)
        for word in rest:
            if word == "--":
                break
            self._take(word, rest)
        self.command = list(rest)
        if not self.command:
            raise Usage("no command after --")

    def _take(self, word: str, rest: Iterator[str]) -> None:
        try:
            if word == "--gate":
                self.gate = int(next(rest))
            elif word == "--connect":
                self.connects.append((int(next(rest)), next(rest)))
            elif word == "--serve":
                self.serves.append((int(next(rest)), int(next(rest))))
            else:
                raise Usage(f"unknown option {word}")
        except (StopIteration, ValueError) as e:
            raise Usage(f"{word} lacks its values") from e


class Relay:
    """Two connected sockets; what one sends, the other gets, each direction closed on its own."""

    def __init__(self, poller: select.epoll, ends: tuple[socket.socket, socket.socket]) -> None:
        self._poller = poller
        self._ends = ends
        self._waiting = (bytearray(), bytearray())  # what each end has still to be sent
        self._finished = [False, False]  # ends that send no more
        self._shut = [False, False]  # ends that were told so
        self._unwatched: set[int] = set()
        for end in ends:
            end.settimeout(0)
            poller.register(end.fileno(), 0)
        self._watch()

    @property
    def filenos(self) -> tuple[int, int]:
        """The two descriptors."""
        return (self._ends[0].fileno(), self._ends[1].fileno())

    def on_event(self, fileno: int, events: int) -> bool:
        """Move what can be moved; False when both directions are over."""
        side = self.filenos.index(fileno)
        gone = bool(events & (select.EPOLLHUP | select.EPOLLERR))
        try:
            if (gone or events & select.EPOLLIN) and not self._finished[side]:
                self._read(side)
            for other in (0, 1):
                self._write(other)
        except OSError as e:
            if e.errno not in {errno.EAGAIN, errno.EINTR}:
                return False
        if all(self._shut) or (gone and self._finished[side] and not self._waiting[1 - side]):
            return False
        if gone and self._finished[side] and side not in self._unwatched:
            # It would be reported for ever, while all that is left is to send on what it said.
            self._unwatched.add(side)
            self._poller.unregister(fileno)
        self._watch()
        return True

    def close(self) -> None:
        """Cut both connections."""
        for side, end in enumerate(self._ends):
            if side not in self._unwatched:
                self._poller.unregister(end.fileno())
            end.close()

    def _read(self, side: int) -> None:
        piece = self._ends[side].recv(_PIECE_BYTES)
        if piece:
            self._waiting[1 - side].extend(piece)
        else:
            self._finished[side] = True

    def _write(self, side: int) -> None:
        waiting = self._waiting[side]
        try:
            while waiting:
                del waiting[: self._ends[side].send(waiting)]
        except BlockingIOError:
            return
        if self._finished[1 - side] and not self._shut[side]:
            self._shut[side] = True
            self._ends[side].shutdown(socket.SHUT_WR)

    def _watch(self) -> None:
        for side in {0, 1} - self._unwatched:
            # A slow receiver holds its sender back: nothing is read while something waits.
            reads = select.EPOLLIN if not self._finished[side] and not self._waiting[1 - side] else 0
            writes = select.EPOLLOUT if self._waiting[side] else 0
            self._poller.modify(self._ends[side].fileno(), reads | writes)


class Forwarder:
    """All listeners and their relays, in one thread: threads would count as processes of the sandbox."""

    def __init__(self) -> None:
        self._poller = select.epoll()
        self._listeners: dict[int, tuple[socket.socket, Dial]] = {}
        self._relays: dict[int, Relay] = {}

    def add_listener(self, listener: socket.socket, dial: Dial) -> None:
        """Connect whoever connects to the listener."""
        listener.settimeout(0)
        self._listeners[listener.fileno()] = (listener, dial)
        self._poller.register(listener.fileno(), select.EPOLLIN)

    def run(self, is_over: Callable[[], bool], wakeup: int) -> None:
        """Forward until it is over; a byte on `wakeup` makes it look again."""
        self._poller.register(wakeup, select.EPOLLIN)
        while not is_over():
            for fileno, events in self._poller.poll():
                if fileno == wakeup:
                    os.read(wakeup, _PIECE_BYTES)
                elif fileno in self._listeners:
                    self._accept(fileno)
                elif fileno in self._relays and not self._relays[fileno].on_event(fileno, events):
                    self._end(self._relays[fileno])

    def _accept(self, fileno: int) -> None:
        listener, dial = self._listeners[fileno]
        try:
            accepted, _ = listener.accept()
        except OSError:
            return
        try:
            other = dial()
        except OSError as e:
            print(f"forward: {e}", file=sys.stderr, flush=True)
            accepted.close()
            return
        relay = Relay(self._poller, (accepted, other))
        self._relays.update(dict.fromkeys(relay.filenos, relay))

    def _end(self, relay: Relay) -> None:
        for fileno in relay.filenos:
            del self._relays[fileno]
        relay.close()


class Child:
    """The command, and its end."""

    def __init__(self, command: list[str]) -> None:
        self.exit_code: int | None = None
        # What this process ignores or blocks, the command must not inherit.
        self._pid = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGPIPE])

    def reap(self) -> bool:
        """Tell whether it has ended."""
        while self.exit_code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid == 0:
                return False
            code = os.waitstatus_to_exitcode(status)
            self.exit_code = code if code >= 0 else 128 - code
        return True

    def pass_on(self, number: int, _: FrameType | None) -> None:
        """Give a signal that this process got to the command."""
        if self.exit_code is None:
            os.kill(self._pid, number)


def main(words: list[str]) -> int:
    """Run the command with its ways out and return its exit code."""
    try:
        arguments = Arguments(words)
    except Usage as e:
        print(f"forward: {e}", file=sys.stderr)
        return EXIT_USAGE
    if arguments.gate is not None and not os.read(arguments.gate, 1):
        return EXIT_GATE
    _close_all_but({fd for fd, _ in arguments.serves})
    forwarder = Forwarder()
    for port, path in arguments.connects:
        listener = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
        forwarder.add_listener(listener, _dial_unix(path))
    for fd, port in arguments.serves:
        os.set_inheritable(fd, False)  # noqa: FBT003 - a C function without keywords
        forwarder.add_listener(socket.socket(fileno=fd), _dial_tcp(port))
    wakeup, awaken = os.pipe()
    os.set_blocking(awaken, False)
    signal.set_wakeup_fd(awaken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        child = Child(arguments.command)
    except OSError as e:
        print(f"forward: {arguments.command[0]}: {e.strerror}", file=sys.stderr)
        return EXIT_NOT_FOUND
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, child.pass_on)
    _let_go_of_standard_streams()
    forwarder.run(child.reap, wakeup)
    return child.exit_code if child.exit_code is not None else EXIT_USAGE


def _close_all_but(kept: set[int]) -> None:
    """Close what was inherited: nothing of the starter's may reach the command."""
    start = _FIRST_OPEN_FD
    for fd in sorted(kept):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, _MAX_FD)


def _let_go_of_standard_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in _STANDARD_FDS:
        os.dup2(nothing, fd)


def _dial_unix(path: str) -> Dial:
    def dial() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
        except OSError:
            connection.close()
            raise
        return connection

    return dial


def _dial_tcp(port: int) -> Dial:
    return lambda: socket.create_connection(("127.0.0.1", port))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
