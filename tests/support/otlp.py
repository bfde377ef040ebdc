"""Reading OTLP's JSON encoding with the official protocol, as a collector does."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_IDS = frozenset({"traceId", "spanId", "parentSpanId"})


def parse_trace_request(line: str) -> Any:
    """OTLP writes ids as hexadecimal digits where protobuf's own JSON has base64; everything else is the same."""
    return json_format.Parse(json.dumps(_convert(json.loads(line))), ExportTraceServiceRequest())


def _convert(value: Any) -> Any:
    if isinstance(value, list):
        return [_convert(one) for one in value]
    if isinstance(value, dict):
        return {key: _encode(one) if key in _IDS else _convert(one) for key, one in value.items()}
    return value


def _encode(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


def attributes_of(thing: Any) -> dict[str, Any]:
    """Attributes as a dictionary."""
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in thing.attributes}
