"""An engine for agents that can't be confined does not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.local.engine import serve


class OldKernel:
    """A C library whose kernel has no Landlock."""

    def syscall(self, *_: object) -> int:
        return -1


def prepare(root: Path, *, must: bool) -> int | None:
    for name in ("data", "data.serving", "logs"):
        (root / name).mkdir()
    return serve._prepare_confinement(root / "data", root / "data.serving", root / "logs" / "log", must=must)


def test_an_engine_for_agents_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S19: better no engine than one that reads the machine for whoever asks."""
    monkeypatch.setattr(serve, "_LIBC", OldKernel())
    with pytest.raises(serve._StartError, match=r"can't confine the engine.*Linux 5\.19"):
        prepare(tmp_path, must=True)


def test_one_that_only_we_can_query_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S19: seeding and results have no stranger as a user."""
    monkeypatch.setattr(serve, "_LIBC", OldKernel())
    assert prepare(tmp_path, must=False) is None
