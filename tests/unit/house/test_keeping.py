"""What a house is told, and what it keeps on disk."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proctor.errors import InvalidInput, Terminal
from proctor.local.house.ledger import Ledger, ServedEntry
from proctor.local.house.settings import read_settings

SECRET = "a-password-of-the-house"
GIVEN = {"PROCTOR_ADMIN_USER": "proctor", "PROCTOR_ADMIN_PASSWORD": SECRET}
ENTRY = ServedEntry(
    user="pr_0123456789_0",
    hash="0123456789abcdef",
    database="ds_0123456789abcdef_1",
    password_digest="0" * 64,
    port=8200,
    until=datetime(2027, 1, 1, tzinfo=UTC),
)


def test_a_house_needs_no_more_than_its_owner() -> None:
    """seams: 8123 for results, 8124 for control, 32 places from 8200."""
    settings = read_settings(GIVEN)
    assert (settings.results_port, settings.control_port) == (8123, 8124)
    assert (settings.places[0], settings.places[-1]) == (8200, 8231)
    assert settings.directory == Path("/var/lib/proctor")
    assert SECRET not in repr(settings)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"PROCTOR_ADMIN_PASSWORD": ""}, "PROCTOR_ADMIN_PASSWORD"),
        ({"PROCTOR_ADMIN_PASSWORD": "short"}, "PROCTOR_ADMIN_PASSWORD"),
        ({"PROCTOR_ADMIN_PASSWORD": "with-a-line-break\nin-it"}, "PROCTOR_ADMIN_PASSWORD"),
        ({"PROCTOR_ADMIN_USER": "a<b"}, "PROCTOR_ADMIN_USER"),
        ({"PROCTOR_ENGINE_MEMORY": "1G"}, "PROCTOR_ENGINE_MEMORY"),
        ({"PROCTOR_ENGINE_MEMORY": "1000"}, "PROCTOR_ENGINE_MEMORY"),
        ({"PROCTOR_HOUSE_PORTS": "1,2"}, "PROCTOR_HOUSE_PORTS"),
        ({"PROCTOR_HOUSE_PORTS": "1,2,65530"}, "PROCTOR_HOUSE_PORTS"),
    ],
)
def test_a_wrong_setting_is_named_and_never_shown(wrong: dict[str, str], named: str) -> None:
    """S17: the password is in no message."""
    with pytest.raises(InvalidInput, match=named) as caught:
        read_settings(GIVEN | wrong)
    assert SECRET not in str(caught.value)


def test_what_is_served_survives_the_house(tmp_path: Path) -> None:
    """issue, Faults: a house that was killed serves the same users at the same ports."""
    ledger = Ledger(tmp_path / "served.json")
    assert ledger.read() == ()
    ledger.write([ENTRY])
    assert Ledger(tmp_path / "served.json").read() == (ENTRY,)
    assert ENTRY.is_over(datetime(2027, 1, 1, tzinfo=UTC))
    assert not ENTRY.is_over(datetime(2026, 12, 31, tzinfo=UTC))


@pytest.mark.parametrize("text", ["", "{", '[{"user": "x"}]', '[{"user": "../../x"}]'])
def test_a_damaged_ledger_is_told_with_what_to_do(tmp_path: Path, text: str) -> None:
    """style: a message names the file and the fix; a path in it is never followed."""
    (tmp_path / "served.json").write_text(text)
    with pytest.raises(Terminal, match="remove it"):
        Ledger(tmp_path / "served.json").read()


def test_room_for_another_engine_is_tried() -> None:
    """S24: a limit of processes that can't be read is found by reaching it; nothing stays of the trial."""
    program = (
        "import resource, threading; from proctor.local.house.headroom import has_room;"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28));"
        "resource.setrlimit(resource.RLIMIT_STACK, (1 << 23, 1 << 23));"
        "print(has_room(2), has_room(10_000), threading.active_count())"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert said.split() == ["True", "False", "1"]
