"""The forwarder's command line and relays, without a sandbox."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from proctor_agent import forward
from proctor_agent.forward import Arguments, Usage
from proctor_agent.wire import check_address, quote_segment

_FILE = str(Path(forward.__file__))


def test_the_whole_command_line() -> None:
    """Options before --, the command after it, whatever it looks like."""
    words = ["--gate", "3", "--connect", "80", "/a", "--serve", "4", "81", "--connect", "82", "/b", "--", "x", "--gate"]
    arguments = Arguments(words)
    assert (arguments.gate, arguments.connects) == (3, [(80, "/a"), (82, "/b")])
    assert (arguments.serves, arguments.command) == ([(4, 81)], ["x", "--gate"])


@pytest.mark.parametrize("words", [[], ["--"], ["--gate", "--", "x"], ["--connect", "1"], ["--odd", "--", "x"]])
def test_what_makes_no_sense(words: list[str]) -> None:
    """Bad usage is told, and has its own exit code."""
    with pytest.raises(Usage):
        Arguments(words)


def test_it_needs_no_package_of_ours() -> None:
    """S20: the file is mounted alone: it runs isolated, from any folder."""
    done = subprocess.run(
        [sys.executable, "-ISE", _FILE, "--", sys.executable, "-c", "print(input())"],
        input=b"through\n",
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == b"through\n"


@pytest.mark.parametrize(("code", "expected"), [("exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_exit_codes(code: str, expected: int) -> None:
    """A command's end is told as shells do."""
    done = subprocess.run([sys.executable, _FILE, "--", sys.executable, "-c", code], check=False, timeout=30)
    assert done.returncode == expected


def test_a_closed_gate_and_a_missing_program() -> None:
    """M-A5: the end of the gate without a byte means that nobody is there: nothing is run."""
    read, write = socket.socketpair()
    with read, write:
        write.close()
        words = ["--gate", str(read.fileno()), "--", sys.executable, "-c", "print('ran')"]
        done = subprocess.run(
            [sys.executable, _FILE, *words], pass_fds=[read.fileno()], capture_output=True, check=False, timeout=30
        )
    assert (done.returncode, done.stdout) == (125, b"")
    missing = subprocess.run([sys.executable, _FILE, "--", "/no/such"], capture_output=True, check=False, timeout=30)
    assert missing.returncode == 127


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("unix:/run/g.sock", True),
        ("http://127.0.0.1:80", True),
        ("http://h:8787/", True),
        ("unix:relative", False),
        ("https://h:1", False),
        ("http://h", False),
        ("", False),
    ],
)
def test_addresses(*, address: str, good: bool) -> None:
    """Two forms, no others."""
    assert check_address(address) is good


def test_a_tool_name_is_one_segment() -> None:
    """S18: no name reaches another path."""
    assert quote_segment("../../runs/attempts?x#y z") == "..%2F..%2Fruns%2Fattempts%3Fx%23y%20z"
    assert quote_segment("\ud800\x00") == "%ED%A0%80%00"
