"""The canary's looks, at sockets of this machine."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor_agent.canary import Arguments, Round, count_processes, look, main, read_pid_limit


@contextlib.contextmanager
def _server(reply: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> Iterator[str]:
    """Somebody who answers each request with a few bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    if connection.recv(1000) and reply:
                        connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        # The other end of a blocked accept is what a closed listener doesn't wake.
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextlib.contextmanager
def _name_server() -> Iterator[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve() -> None:
            query, asker = server.recvfrom(512)
            server.sendto(query[:2] + b"\x81\x80", asker)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"udp:127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def _closed() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_s12_all_is_as_it_should_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S12: the gateway answers, nothing else does; the last words say so, and how many processes there may be."""
    report, closed = tmp_path / "words", _closed()
    with _server() as gateway:
        code = main(["--open", gateway, "--closed", closed, "--closed", f"udp:{closed}", "--report", str(report)])
    said = json.loads(report.read_text())
    assert code == 0
    assert said["allowed"] == {gateway: "open"}
    assert said["forbidden"] == {closed: "closed", f"udp:{closed}": "closed"}
    assert said["pidsMax"] is None or said["pidsMax"] > 0
    assert json.loads(capsys.readouterr().out) == said


def test_s9_s11_what_is_open_is_found(tmp_path: Path) -> None:
    """S9, S11: something that listens, and a name server that answers; the canary waits, and then says so."""
    with _server() as gateway, _server() as other, _name_server() as names:
        words = ["--open", gateway, "--closed", other, "--closed", names]
        assert Round(Arguments(words)).answered == {gateway: True, other: True, names: True}
        code = main([*words, "--seconds", "0", "--report", str(tmp_path / "words")])
    assert code == 1
    assert json.loads((tmp_path / "words").read_text())["forbidden"][other] == "open"


def test_s12_a_gateway_that_only_listens_does_not_answer() -> None:
    """S12: a connection alone is no positive control."""
    with _server(reply=b"") as gateway:
        assert not Round(Arguments(["--open", gateway])).is_right


def test_s13_it_looks_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """S13: open at first, closed later: as often in a row as asked, and not before."""
    looks = iter([False, True, False, True, True, True, True])

    class Seen:
        def __init__(self, _: Arguments) -> None:
            self.is_right = next(looks)

    monkeypatch.setattr("proctor_agent.canary.Round", Seen)
    monkeypatch.setattr("proctor_agent.canary._PAUSE_SECONDS", 0)
    assert look(Arguments(["--open", "10.0.0.1:1", "--times", "3"])).is_right
    assert list(looks) == [True]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--closed", "10.0.0.1:1"],
        ["--open", "gateway:80"],
        ["--open", "10.0.0.1"],
        ["--open", "10.0.0.1:0"],
        ["--open", "10.0.0.1:70000"],
        ["--open", "10.0.0.1:٣"],
        ["--open", "10.0.0.1:1", "--closed"],
        ["--open", "10.0.0.1:1", "--seconds", "soon"],
        ["--open", "10.0.0.1:1", "--other", "x"],
        ["--open", "10.0.0.1:1", *(["--closed", "10.0.0.1:2"] * 64)],
    ],
)
def test_a_wrong_command_line_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """S11: addresses only, since nothing here may look up a name; and no more than fit into the last words."""
    assert main(words) == 64
    assert capsys.readouterr().out.startswith("canary: ")


def test_an_address_of_the_sixth_version_is_tried() -> None:
    """Both families; the brackets are not part of the address."""
    assert Round(Arguments(["--open", "[::1]:1"])).answered == {"[::1]:1": False}


@pytest.mark.parametrize(("text", "limit"), [("512\n", 512), ("max\n", None), ("", None)])
def test_s24_the_limit_of_processes_is_read(tmp_path: Path, text: str, limit: int | None) -> None:
    """S24: of whichever version the cgroups are."""
    place = tmp_path / "pids.max"
    place.write_text(text)
    assert read_pid_limit(("/no/such/file", str(place))) == limit
    assert read_pid_limit(("/no/such/file",)) is None


def test_s24_where_nothing_says_so_processes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """S24: a pod's limit can't be read inside it, but met; what was started for that ends."""
    before = threading.active_count()
    assert count_processes(20) is None
    started = threading.Thread.start
    left = iter(range(7))

    def start(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        started(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    assert count_processes(20) == 8
    assert threading.active_count() == before
