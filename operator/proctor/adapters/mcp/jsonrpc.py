"""JSON-RPC 2.0 messages as MCP uses them: read strictly, kept as they came."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Never, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
MessageId: TypeAlias = str | int

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_ID_BEFORE_RESULT = re.compile(rb'^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d{1,15})\s*[,}]')
"""Our own ids are whole numbers, and servers write them before the result. Anchored and without nesting: linear."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call that wants an answer."""

    id: MessageId
    method: str
    params: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notification:
    """A message without an answer."""

    method: str
    params: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RpcResult:
    """A successful answer."""

    id: MessageId
    result: JsonObject


@dataclass(frozen=True, slots=True)
class RpcError:
    """A failed answer; `id` is None where the peer couldn't tell which request it answers."""

    id: MessageId | None
    code: int
    message: str
    data: object = None


Message: TypeAlias = Request | Notification | RpcResult | RpcError


class InvalidMessage(ValueError):  # noqa: N818 - it describes the message
    """Bytes that are no JSON-RPC message.

    Attributes:
        id: the request that it was meant to answer or to be, where that much could be read.
        code: the JSON-RPC error code that describes it.
    """

    def __init__(self, reason: str, *, code: int = INVALID_REQUEST, id: MessageId | None = None) -> None:  # noqa: A002
        super().__init__(reason)
        self.code = code
        self.id = id


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large to be written back")
    return value


def parse_json(body: bytes) -> object:
    """Read strict JSON: UTF-8, no NaN.

    Raises:
        InvalidMessage: it is something else.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as e:
        raise InvalidMessage("not valid UTF-8", code=PARSE_ERROR, id=peek_id(body)) from e
    try:
        # ValueError also covers integers of thousands of digits; RecursionError, deep nesting.
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_read_float)
    except (ValueError, RecursionError) as e:
        raise InvalidMessage("not valid JSON", code=PARSE_ERROR, id=peek_id(body)) from e


def parse_message(body: bytes) -> Message:
    """Read one JSON-RPC message; a batch is none.

    Raises:
        InvalidMessage: it is not exactly one request, notification or answer.
    """
    return read_message(parse_json(body))


def read_message(value: object) -> Message:
    """Read one JSON-RPC message from JSON that is parsed already.

    Raises:
        InvalidMessage: it is not exactly one request, notification or answer.
    """
    if isinstance(value, list):
        raise InvalidMessage("JSON-RPC batches are not part of MCP")
    if not isinstance(value, dict):
        raise InvalidMessage("not a JSON object")
    id_ = value.get("id")
    known = id_ if isinstance(id_, (str, int)) and not isinstance(id_, bool) else None
    if value.get("jsonrpc") != "2.0":
        raise InvalidMessage('"jsonrpc" is not "2.0"', id=known)
    if "method" in value:
        return _read_call(value, known)
    return _read_answer(value, known)


def _read_call(value: JsonObject, known: MessageId | None) -> Message:
    method, params = value["method"], value.get("params", {})
    if not isinstance(method, str):
        raise InvalidMessage('"method" is not a string', id=known)
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise InvalidMessage('"params" is not an object', code=INVALID_PARAMS, id=known)
    if "id" not in value:
        return Notification(method, params)
    if known is None:
        raise InvalidMessage('"id" is neither a string nor a whole number')
    return Request(known, method, params)


def _read_answer(value: JsonObject, known: MessageId | None) -> Message:
    if "error" in value and "result" not in value:
        error = value["error"]
        if not isinstance(error, dict) or not isinstance(error.get("code"), int):
            raise InvalidMessage('"error" has no whole-number "code"', id=known)
        return RpcError(known, error["code"], str(error.get("message", "")), error.get("data"))
    if "result" in value and "error" not in value:
        if known is None:
            raise InvalidMessage('"id" is neither a string nor a whole number')
        if not isinstance(value["result"], dict):
            raise InvalidMessage('"result" is not an object', id=known)
        return RpcResult(known, value["result"])
    raise InvalidMessage('neither a "method" nor exactly one of "result" and "error"', id=known)


def peek_id(head: bytes) -> MessageId | None:
    """Read the id from the start of a message that can't be parsed whole; None where it isn't among the first keys."""
    found = _ID_BEFORE_RESULT.match(head[:200])
    return int(found.group(1)) if found else None


def encode(value: object) -> bytes:
    """Serialise on one line. Lone surrogates, which UTF-8 can't carry, stay escaped as they came."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def build_request(id_: MessageId, method: str, params: JsonObject) -> JsonObject:
    """Return a request as JSON; empty params are left out, as some servers want them absent."""
    message: JsonObject = {"jsonrpc": "2.0", "id": id_, "method": method}
    if params:
        message["params"] = params
    return message


def build_notification(method: str, params: JsonObject) -> JsonObject:
    """Return a notification as JSON."""
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params:
        message["params"] = params
    return message


def build_error(id_: MessageId | None, code: int, message: str, data: object = None) -> JsonObject:
    """Return a failed answer as JSON."""
    error: JsonObject = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id_, "error": error}


def build_result(id_: MessageId, result: JsonObject) -> JsonObject:
    """Return a successful answer as JSON."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def splice_result(id_: MessageId, result: bytes) -> bytes:
    """Return a successful answer around a result that is serialised already: a large one isn't written twice."""
    return b'{"jsonrpc":"2.0","id":' + encode(id_) + b',"result":' + result + b"}"
