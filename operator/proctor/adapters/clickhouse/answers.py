"""What ClickHouse answers over HTTP: rows, or an error that says what happens next."""

from __future__ import annotations

import re
from http import HTTPStatus

from proctor.adapters.clickhouse.rowjson import Row, parse_rows
from proctor.errors import Retryable, Terminal

_MESSAGE_CHARS = 600

_PASSING_CODES = frozenset({
    3,  # unexpected end of file, of a request that was cut
    159,  # timeout exceeded
    164,  # read-only, while a replicated table has lost its keeper
    202,  # too many simultaneous queries
    209,  # socket timeout
    210,  # network error
    225,  # no keeper
    236,  # aborted: the server is stopping
    241,  # memory limit
    242,  # table is read-only, as 164
    243,  # not enough space
    252,  # too many parts: merges are behind
    285,  # too few live replicas
    319,  # unknown status of insert
    394,  # query was cancelled, by the server's stop
    439,  # no thread to be had
    425,  # system error of the file system
    999,  # keeper exception
})  # fmt: skip
"""Codes of ClickHouse that say nothing against the request: the same one may succeed later."""

_NO_SPACE, _FULL = 243, b"No space left on device"
"""Its code for a disk on which it can't reserve room, and its words for one that is full under several others."""

_BROKEN_OFF = re.compile(rb"Code: (\d{1,9})\. DB::")
"""How an error begins that comes when a part of an answer was sent already, with a status that said all was well."""
_TAIL_BYTES = 16 * 1024


class ClickHouseError(Terminal):
    """ClickHouse refused a request that no repetition can save.

    Args:
        message: what was attempted, and ClickHouse's answer.
        code: ClickHouse's number for it; None where it gave none.
    """

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class PassingError(Retryable):
    """ClickHouse could not carry out a request now.

    Args:
        message: what was attempted, and ClickHouse's answer.
        code: ClickHouse's number for it; None where it gave none.
    """

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def check_answer(what: str, status: int, code: str, body: bytes) -> None:
    """Return if a request was carried out.

    Args:
        what: what was attempted, and where.
        status: of the answer.
        code: its header ``X-ClickHouse-Exception-Code``; empty without one.
        body: all of it.

    Raises:
        Retryable: the same request may succeed later.
        ClickHouseError: it never will.
    """
    if _is_error(status, code):
        raise _build_error(what, status, int(code) if code.isdigit() else None, body)


def read_rows(what: str, body: bytes) -> list[Row]:
    """Return the rows of an answer that began well; errors as for `check_answer`."""
    try:
        return parse_rows(body)
    except ValueError as e:
        tail = body[-_TAIL_BYTES:]
        if found := _BROKEN_OFF.search(tail):
            raise _build_error(what, HTTPStatus.OK, int(found[1]), tail[found.start() :]) from e
        raise Retryable(f"{what}: the answer broke off in the middle") from e


def tells_full_disk(status: int, code: str, body: bytes) -> bool:
    """Tell whether an error says that ClickHouse's disk has no room: whoever makes some gets the same rows.

    Rows may hold any words, those of an agent that filled its own disk too.
    """
    return _is_error(status, code) and (code == str(_NO_SPACE) or _FULL in body)


def _is_error(status: int, code: str) -> bool:
    return status != HTTPStatus.OK or bool(code)


def _build_error(what: str, status: int, code: int | None, body: bytes) -> Retryable | ClickHouseError:
    text = body.decode("utf-8", "replace").strip() or f"status {status}"
    message = f"{what}: {text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS] + '…'}"
    # Without a code it was not ClickHouse that answered, but something on the way there.
    on_the_way = code is None and status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if code in _PASSING_CODES or _FULL in body or on_the_way:
        return PassingError(message, code=code)
    return ClickHouseError(message, code=code)
