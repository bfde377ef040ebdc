"""The three kinds of failure; an exception's type says what happens next.

    ProctorError
    ├── Retryable     the same attempt may succeed later
    ├── Terminal      it will never succeed: report and stop
    │   └── DiskFull  … unless a person makes room: a run stops, and can be resumed
    └── InvalidInput  the caller's input is at fault: say which field, and how to mend it

Every message names the kind of object, its name, and what was being attempted. Foreign exceptions are translated
in the adapter that meets them, once, with ``from``.
"""

from __future__ import annotations


class ProctorError(Exception):
    """Base of every failure that Proctor raises on purpose."""


class Retryable(ProctorError):  # noqa: N818 - named for what happens next, not for being an error
    """Worth another try.

    Args:
        message: what was attempted on which object.
        delay: seconds to wait before the next try.
    """

    def __init__(self, message: str, *, delay: float = 1.0) -> None:
        super().__init__(message)
        self.delay = delay


class Terminal(ProctorError):  # noqa: N818 - as above
    """No retry can help."""


class DiskFull(Terminal):
    """There is no room on a disk.

    Args:
        attempted: what was being done, and where.
    """

    def __init__(self, attempted: str) -> None:
        super().__init__(
            f"{attempted}: the disk is full; free some space, then give the same command again, "
            "or choose a folder on another disk"
        )


class InvalidInput(ProctorError):  # noqa: N818 - as above
    """The input is at fault; the message names the file, the field and the fix."""
