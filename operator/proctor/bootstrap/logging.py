"""Logs as JSON lines that can't leak: a constant message, and extras from a closed list.

Prompts, answers, keys and tokens travel through this program; none may reach a log. So arguments of a message are
never rendered for other people's loggers, and of an exception only its type and where it was raised are told: its
message may quote what was being read.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

from proctor.clock import format_instant

EXTRAS = ("run", "cell", "attempt", "code", "status", "outcome", "server", "scenario", "seconds", "count", "problem")
"""Extras that are written; anything else handed to a logger is dropped."""

_OWN = "proctor"
_MAX_VALUE = 300
_MAX_FRAMES = 12
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Render a record."""
        own = record.name.split(".")[0] == _OWN
        line: dict[str, object] = {
            "ts": format_instant(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            # A library's message is the first line of its template: what it would fill in, or adds below, may be
            # a header or a body.
            "message": record.getMessage()[:_MAX_VALUE]
            if own and not record.args
            else str(record.msg).partition("\n")[0][:_MAX_VALUE],
        }
        extras = {name: getattr(record, name) for name in EXTRAS if hasattr(record, name)}
        line |= {name: _plain(value) for name, value in extras.items()}
        if record.exc_info:
            line["error"] = _describe(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def set_up_logging(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Send this process's logs to a stream, standard error by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_OWN).setLevel(level)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | bool) or value is None else str(value)[:_MAX_VALUE]


def _describe(exc_info: _ExcInfo) -> dict[str, object]:
    kind, _, where = exc_info
    frames = traceback.extract_tb(where)[-_MAX_FRAMES:]
    return {
        "type": kind.__qualname__ if kind else "",
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }
