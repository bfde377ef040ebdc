"""From a server's command to what is shown of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proctor.adapters.sandbox import availability
from proctor.adapters.sandbox.agents import agent_spec
from proctor.adapters.sandbox.commands import find_program, program_mounts
from proctor.adapters.sandbox.places import hidden_places, is_too_broad, own_places, system_mounts
from proctor.adapters.sandbox.servers import ServerRequest, server_spec
from proctor.adapters.sandbox.spec import Isolation, Mount
from proctor.errors import InvalidInput


def _write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def _sources(command: tuple[str, ...], search_path: str, private: tuple[Path, ...] = ()) -> set[Path]:
    program = find_program(command[0], search_path)
    mounts = program_mounts(command, program, search_path=search_path, private=private, seen=system_mounts())
    return {mount.source for mount in mounts}


def test_a_program_is_found_on_the_path_or_beside_this_python(tmp_path: Path) -> None:
    """M-A5: the quickstart's servers are beside the interpreter, others on the path."""
    mine = _write_program(tmp_path / "bin/mine", "#!/bin/sh\n")
    assert find_program("mine", str(tmp_path / "bin")) == mine
    assert find_program(Path(sys.executable).name, "/nonexistent").parent == Path(sys.executable).parent
    with pytest.raises(InvalidInput, match="no such program"):
        find_program("no-such-server", "/usr/bin")


def test_a_virtual_environment_is_shown_whole_with_its_base(tmp_path: Path) -> None:
    """M-A5: the command's environment and its base interpreter."""
    base = _write_program(tmp_path / "base/bin/python3", "binary")
    (tmp_path / "base/lib").mkdir()
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(base)
    (venv / "pyvenv.cfg").write_text(f"home = {base.parent}\nversion = 3.11\n")
    _write_program(venv / "bin/server", f"#!{venv}/bin/python\n")
    assert _sources(("server",), str(venv / "bin")) == {venv, tmp_path / "base/bin", tmp_path / "base/lib"}


def test_of_another_prefix_only_programs_and_libraries(tmp_path: Path) -> None:
    """M-A5: a prefix such as ~/.local holds anybody's data under share."""
    _write_program(tmp_path / "prefix/lib/tool/cli.js", "#!/usr/bin/env -S sh -e\n")
    (tmp_path / "prefix/bin").mkdir()
    (tmp_path / "prefix/share").mkdir()
    (tmp_path / "prefix/bin/tool").symlink_to("../lib/tool/cli.js")
    shown = _sources(("tool",), f"{tmp_path}/prefix/bin:/usr/bin:/bin")
    assert shown == {tmp_path / "prefix/bin", tmp_path / "prefix/lib"}


def test_files_among_the_arguments_are_shown_with_their_folder(tmp_path: Path) -> None:
    """M-A5: `python /srv/server/main.py` needs what is beside it."""
    (tmp_path / "server").mkdir()
    main = tmp_path / "server/main.py"
    main.write_text("")
    assert _sources(("sh", str(main)), "/usr/bin:/bin") == {main.parent}
    assert _sources(("sh", f"--config={main}"), "/usr/bin:/bin") == {main.parent}


def test_no_folder_that_holds_too_much_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S15: of a home, or of a folder with something private in it, the file alone."""
    monkeypatch.setenv("HOME", str(tmp_path))
    main = tmp_path / "main.py"
    main.write_text("")
    assert _sources(("sh", str(main)), "/usr/bin:/bin") == {main}
    with pytest.raises(InvalidInput, match="may not be shown"):
        _sources(("sh", str(tmp_path)), "/usr/bin:/bin")
    other = tmp_path / "work/server.py"
    _write_program(other, "")
    assert _sources(("sh", str(other)), "/usr/bin:/bin", (tmp_path / "work/runs",)) == {other}


def test_s20_a_private_file_is_hidden_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S20: a suite, which names scenarios, may be beside a program: the folder is shown, and the suite looks empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    program, suite = tmp_path / "work/server.py", tmp_path / "work/suite.yaml"
    _write_program(program, "")
    suite.write_text("scenarios: [{name: error-root-cause}]")
    assert _sources(("sh", str(program)), "/usr/bin:/bin", (suite,)) == {program.parent}
    assert hidden_places((Mount.same(program.parent),), private=(suite,)) == (suite,)


def test_proctors_own_places_are_too_broad_to_show() -> None:
    """S20: nothing of Proctor, nor a folder that holds it."""
    for place in own_places():
        assert is_too_broad(place, ())
        assert is_too_broad(place.parent, ())
    assert is_too_broad(Path("/"), ())
    assert not is_too_broad(Path("/usr/lib"), ())


def test_s20_installed_packages_are_hidden(tmp_path: Path) -> None:
    """S20: in every environment that is shown, `proctor`, the agent, their metadata and editable links look empty."""
    site = tmp_path / "lib/python3.11/site-packages"
    for name in ("proctor", "proctor_agent", "proctor-1.0.dist-info", "other"):
        (site / name).mkdir(parents=True)
    (site / "_proctor.pth").write_text("/src")
    (tmp_path / "data/runs").mkdir(parents=True)
    hidden = hidden_places((Mount(tmp_path, Path("/env")),), private=(tmp_path / "data", tmp_path / "data/runs"))
    assert [str(path) for path in hidden] == [
        "/env/data",
        "/env/lib/python3.11/site-packages/_proctor.pth",
        "/env/lib/python3.11/site-packages/proctor",
        "/env/lib/python3.11/site-packages/proctor-1.0.dist-info",
        "/env/lib/python3.11/site-packages/proctor_agent",
    ]


def test_a_missing_interpreter_is_named(tmp_path: Path) -> None:
    """A clear error: which command, which interpreter."""
    _write_program(tmp_path / "bin/server", "#!/no/such/python\n")
    with pytest.raises(InvalidInput, match="/no/such/python"):
        _sources(("server",), str(tmp_path / "bin"))


def test_interpreters_that_lead_in_a_circle_are_refused(tmp_path: Path) -> None:
    """Hostile or broken input ends."""
    one = tmp_path / "bin/one"
    _write_program(one, f"#!{one}\n")
    with pytest.raises(InvalidInput, match="circle"):
        _sources(("one",), str(one.parent))


def test_s8_s15_environments_hold_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S8, S15: nothing is inherited; PATH names only folders that can be seen."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-x")
    request = ServerRequest(command=("sh",), environment={"A": "b", "PATH": "/x"}, search_path="/srv/own:/usr/bin:/bin")
    spec = server_spec(request)
    assert spec.environment == {
        "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "A": "b", "PATH": "/usr/bin:/usr/local/bin",
    }  # fmt: skip
    agent = agent_spec(tmp_path / "g.sock", "tok", stream=False)
    assert agent.environment == {
        "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PROCTOR_TOKEN": "tok", "PROCTOR_STREAM": "0",
        "PROCTOR_GATEWAY": "unix:/run/gateway.sock",
    }  # fmt: skip
    assert "tok" not in repr(agent)


def test_without_a_sandbox_paths_are_this_machines(tmp_path: Path) -> None:
    """--sandbox=none: nothing is mounted, so nothing is renamed."""
    spec = agent_spec(tmp_path / "g.sock", "tok", isolation=Isolation.NONE)
    assert spec.environment["PROCTOR_GATEWAY"] == f"unix:{tmp_path}/g.sock"
    assert "/opt/agent" not in " ".join(spec.command)


def test_elsewhere_the_reason_and_the_fix_are_said() -> None:
    """M-A5: where bubblewrap can't run, the refusal names the fix."""
    assert "Linux" in str(availability._probe("darwin", "arm64"))
    assert "--sandbox=none" in str(availability._probe("darwin", "arm64"))
    assert "riscv64" in str(availability._probe("linux", "riscv64"))
