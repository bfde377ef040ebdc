"""From the command of a server under test, or of an agent, to what of this machine it needs to run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from proctor.adapters.sandbox.places import is_too_broad, is_visible
from proctor.adapters.sandbox.spec import Mount
from proctor.errors import InvalidInput

_BIN_NAMES = frozenset({"bin", "sbin"})
_NODE_BIN = ".bin"
_PREFIX_PARTS = ("bin", "sbin", "lib", "lib64", "libexec")
"""What of a prefix its programs need; what else is under one, `share` above all, may be anybody's."""

_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")

_SHEBANG_BYTES = 256
_MAX_LINKS = 16


def find_program(name: str, search_path: str) -> Path:
    """Return where a program is: on the search path, or next to the Python that runs this.

    Raises:
        InvalidInput: it is nowhere, or can't be run.
    """
    path = os.pathsep.join((search_path, str(Path(sys.executable).parent)))
    found = shutil.which(name, path=path)
    if found is None:
        raise InvalidInput(f"command {name!r}: no such program on PATH; install it, or give its absolute path")
    return Path(os.path.abspath(found))  # noqa: PTH100 - resolve() would follow a link, and the name may matter


def program_mounts(
    command: tuple[str, ...], program: Path, *, search_path: str, private: tuple[Path, ...], seen: tuple[Mount, ...]
) -> tuple[Mount, ...]:
    """Return what has to be mounted, beyond what is seen already, for a program and its arguments.

    Args:
        command: program and arguments, as the suite has them.
        program: where the program is.
        search_path: where interpreters are found.
        private: what may never be shown.
        seen: what is mounted already.

    Raises:
        InvalidInput: an interpreter is missing, or the program is where nothing may be shown.
    """
    mounts = _Mounts(private, seen)
    mounts.add_program(program, search_path, depth=0)
    for argument in command[1:]:
        value = Path(argument.partition("=")[2] if argument.startswith("-") else argument)
        if value.is_absolute() and value.exists():
            mounts.add_beside(value)
    return tuple(mounts.added)


def inner_path(search_path: str, program: Path, shown: Iterable[Mount]) -> str:
    """Return the PATH inside: what of the search path is seen there, the program's own folder first."""
    shown = tuple(shown)
    folders = [str(program.parent), *search_path.split(os.pathsep), *_SYSTEM_PATH]
    return os.pathsep.join(dict.fromkeys(folder for folder in folders if folder and is_visible(Path(folder), shown)))


class _Mounts:
    def __init__(self, private: tuple[Path, ...], seen: tuple[Mount, ...]) -> None:
        self._private = private
        self._seen = list(seen)
        self.added: list[Mount] = []

    def add_program(self, program: Path, search_path: str, *, depth: int) -> None:
        """Show a program, what its links lead to, and the interpreter that runs it."""
        if depth > _MAX_LINKS:
            raise InvalidInput(f"command {str(program)!r}: its interpreters lead in a circle")
        for path in _hops(program):
            self._add_prefix(path)
        interpreter = _read_interpreter(program, search_path)
        if interpreter is not None:
            self.add_program(interpreter, search_path, depth=depth + 1)

    def add_beside(self, path: Path) -> None:
        """Show a file with its folder, or a folder; of one that holds too much, the file alone."""
        for hop in _hops(path):
            if hop.is_dir():
                if is_too_broad(hop, self._private):
                    raise InvalidInput(f"argument {str(path)!r}: this folder may not be shown in a sandbox")
                self._add(hop)
            elif is_too_broad(hop.parent, self._private):
                self._add(hop)
            else:
                self._add(hop.parent)

    def _add_prefix(self, path: Path) -> None:
        if path.parent.name == _NODE_BIN:
            self.add_beside(path.parent.parent)
        elif path.parent.name not in _BIN_NAMES:
            self.add_beside(path)
        elif (path.parent.parent / "pyvenv.cfg").is_file():
            self._add(path.parent.parent)
            self._add_base(path.parent.parent / "pyvenv.cfg")
        else:
            for part in _PREFIX_PARTS:
                folder = path.parent.parent / part
                if folder.is_dir():
                    self._add(folder)

    def _add_base(self, settings: Path) -> None:
        for line in settings.read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home" and (home := Path(value.strip())).is_dir():
                self._add_base_prefix(home)

    def _add_base_prefix(self, home: Path) -> None:
        for folder in {home, home.resolve()}:
            for part in _PREFIX_PARTS:
                if (folder.parent / part).is_dir():
                    self._add(folder.parent / part)

    def _add(self, path: Path) -> None:
        if not is_visible(path, (*self._seen, *self.added)):
            self.added.append(Mount.same(path))


def _hops(path: Path) -> Iterator[Path]:
    """Give a path and all that its links lead to."""
    for _ in range(_MAX_LINKS):
        yield path
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    resolved = path.resolve()
    if resolved != path:
        yield resolved


def _read_interpreter(program: Path, search_path: str) -> Path | None:
    """Return the interpreter that a script names in its first line; None for a binary."""
    with program.open("rb") as file:
        first = file.read(_SHEBANG_BYTES).partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return find_program(words[0], search_path) if words else None
    if not words or not Path(words[0]).exists():
        raise InvalidInput(f"command {str(program)!r}: its interpreter {' '.join(words)!r} does not exist")
    return Path(words[0])
