"""What of this machine a sandbox sees: the system's programs, the Python that runs ours, and nothing of ours."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from pathlib import Path

from proctor.adapters.sandbox.spec import Mount
from proctor.settings import shipped_scenarios_dir

_SYSTEM = Path("/usr")
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SETTINGS = (
    "ld.so.cache",
    "alternatives",
    "localtime",
    "mime.types",
    *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem"),  # not `ssl` whole: its folder `private` holds keys
)
"""What programs look up under /etc: the loader's cache, links to programs, the time zone, public certificates."""

_OWN_NAMES = ("proctor", "proctor_agent", "proctor-*.dist-info", "_proctor.pth", "__editable__*proctor*")
_SITE_FOLDERS = ("lib/python*/site-packages", "lib/python*/dist-packages", "lib64/python*/site-packages")
_PACKAGE = Path(__file__).resolve().parents[2]


def system_mounts() -> tuple[Mount, ...]:
    """Return the mounts that every sandbox has."""
    found = [Mount.same(_SYSTEM)]
    found += [Mount.same(path) for name in _MERGED if (path := Path("/", name)).is_dir() and not path.is_symlink()]
    found += [Mount.same(path) for name in _SETTINGS if (path := Path("/etc", name)).exists()]
    base = Path(sys.base_prefix).resolve()
    if not is_visible(base, found):
        found.append(Mount.same(base))
    return tuple(found)


def system_links() -> dict[str, str]:
    """Return the links at the root that lead into /usr, as on this machine."""
    return {str(path): str(path.readlink()) for name in _MERGED if (path := Path("/", name)).is_symlink()}


def base_interpreter() -> Path:
    """Return the Python that runs ours, outside of its virtual environment."""
    return Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()


def is_visible(path: Path, mounts: Iterable[Mount]) -> bool:
    """Tell whether a path is inside one of the mounts."""
    return any(path.is_relative_to(mount.source) for mount in mounts)


def is_too_broad(folder: Path, private: Iterable[Path]) -> bool:
    """Tell whether a folder holds more than a program: a home, the whole machine, or something private.

    A private file is no reason: it is hidden where it is, and what is beside it may be needed.
    """
    home = Path.home()
    kept_back = [home, Path("/"), *own_places(), *(path for path in private if not path.is_file())]
    return any(place == folder or place.is_relative_to(folder) for place in kept_back)


def own_places() -> tuple[Path, ...]:
    """Return where Proctor's own code and the shipped scenarios are."""
    return (_PACKAGE, _PACKAGE.parent / "proctor_agent", shipped_scenarios_dir().resolve())


def hidden_places(mounts: Iterable[Mount], private: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Return the paths, as seen inside, of what the mounts would show of Proctor, its scenarios or anything private."""
    found: set[Path] = set()
    for mount in mounts:
        for place in (*own_places(), *private):
            if place != mount.source and place.is_relative_to(mount.source) and place.exists():
                found.add(mount.target / place.relative_to(mount.source))
        for place in _own_files(mount.source):
            found.add(mount.target / place.relative_to(mount.source))
    # What is inside a hidden folder is hidden with it, and can't be covered a second time.
    return tuple(sorted(path for path in found if not any(parent in found for parent in path.parents)))


@functools.cache
def _own_files(prefix: Path) -> tuple[Path, ...]:
    """Return what is installed of ours under a prefix; looked up once, since every start asks."""
    if not prefix.is_dir():
        return ()
    roots = (prefix, prefix / "local")
    found = (
        path for root in roots for site in _SITE_FOLDERS for name in _OWN_NAMES for path in root.glob(f"{site}/{name}")
    )
    # A folder that is a link (lib64 → lib) leads to what is found without it.
    return tuple(path for path in found if path.parent.resolve() == path.parent)
