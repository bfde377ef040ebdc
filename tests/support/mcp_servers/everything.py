"""An MCP server with one of everything that the official conformance suite asks for; standard library only.

Run as a program it speaks on its standard streams; `everything_http.py` puts it behind streamable HTTP.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Protocol

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


class Peer(Protocol):
    """The client, as one request of it sees it."""

    def send(self, message: dict[str, Any]) -> None:
        """Send a notification that belongs to the request."""

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the client something; its answer, a result or an error."""

    def hang_up(self) -> None:
        """End the request's stream before its answer, where there is one: the client has to come again."""


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def resource(uri: str, value: str) -> dict[str, Any]:
    return {"uri": uri, "mimeType": "text/plain", "text": value}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
EMBEDDED = {
    "type": "resource",
    "resource": resource("test://embedded-resource", "This is an embedded resource content."),
}
MIXED = {
    "type": "resource",
    "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":"data"}'},
}
CONTENT: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [EMBEDDED],
    "test_multiple_content_types": [text("Multiple content types test:"), IMAGE, MIXED],
    "test_tool_with_logging": [text("Logged three times.")],
    "test_tool_with_progress": [text("Progressed three times.")],
    "test_error_handling": [text("This tool intentionally returns an error for testing")],
    "json_schema_2020_12_tool": [text("{}")],
    "test_reconnection": [text("Reconnected.")],
}


def _text_field(default: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "string", **({} if default is None else {"default": default}), **more}


DEFAULTS = {
    "name": _text_field("John Doe"),
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": _text_field("active", enum=["active", "inactive", "pending"]),
    "verified": {"type": "boolean", "default": True},
}
TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]
ENUMS = {
    "untitledSingle": _text_field(enum=["option1", "option2"]),
    "titledSingle": _text_field(oneOf=TITLED),
    "legacyEnum": _text_field(enum=["opt1", "opt2"], enumNames=["Option One", "Option Two"]),
    "untitledMulti": {"type": "array", "items": _text_field(enum=["option1", "option2"])},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
USER = {"username": _text_field(), "email": _text_field()}


def _elicit(properties: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    schema = {"type": "object", "properties": properties, "required": []}
    return "elicitation/create", {"message": "Please say.", "requestedSchema": schema}


QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "test_sampling": (
        "sampling/createMessage",
        {"messages": [{"role": "user", "content": text("Please say.")}], "maxTokens": 100},
    ),
    "test_elicitation": _elicit(USER),
    "test_elicitation_sep1034_defaults": _elicit(DEFAULTS),
    "test_elicitation_sep1330_enums": _elicit(ENUMS),
}
"""Tools that ask the client, and what."""
PROMPTS: list[dict[str, Any]] = [
    {"name": "test_simple_prompt", "description": "A simple prompt."},
    {
        "name": "test_prompt_with_arguments",
        "description": "A prompt with arguments.",
        "arguments": [{"name": "arg1", "required": True}, {"name": "arg2", "required": True}],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "A prompt with a resource.",
        "arguments": [{"name": "resourceUri", "required": True}],
    },
    {"name": "test_prompt_with_image", "description": "A prompt with an image."},
]


def list_tools() -> dict[str, Any]:
    plain = {"type": "object", "properties": {}}
    return {
        "tools": [
            {"name": name, "description": f"Shows {name}.", "inputSchema": SCHEMA if name.startswith("json") else plain}
            for name in (*CONTENT, *QUESTIONS)
        ]
    }


def call_tool(params: Any, peer: Peer) -> dict[str, Any]:
    name = params["name"]
    if name == "test_tool_with_logging":
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            peer.send({"method": "notifications/message", "params": {"level": "info", "data": words}})
    if name == "test_tool_with_progress":
        token = params.get("_meta", {}).get("progressToken")
        for done in (0, 50, 100):
            told = {"progressToken": token, "progress": done, "total": 100}
            peer.send({"method": "notifications/progress", "params": told})
    if name == "test_reconnection":
        peer.hang_up()
    if name in QUESTIONS:
        answer = peer.ask(*QUESTIONS[name])
        return {"content": [text(json.dumps(answer))], "isError": "error" in answer}
    return {"content": CONTENT[name], "isError": name == "test_error_handling"}


def list_resources() -> dict[str, Any]:
    uris = ("test://static-text", "test://static-binary", "test://watched-resource")
    return {"resources": [{"uri": uri, "name": uri[7:], "description": "For tests.", "mimeType": "x"} for uri in uris]}


def read_resource(params: Any) -> dict[str, Any]:
    uri = params["uri"]
    if uri == "test://static-binary":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PNG}]}
    if uri.startswith("test://template/"):
        value = json.dumps({"id": uri.split("/")[3], "templateTest": True, "data": f"Data for ID: {uri.split('/')[3]}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": value}]}
    return {"contents": [resource(uri, "This is the content of the static text resource.")]}


def get_prompt(params: Any) -> dict[str, Any]:
    args = params.get("arguments", {})

    def say(content: dict[str, Any]) -> dict[str, Any]:
        return {"role": "user", "content": content}

    messages = {
        "test_simple_prompt": [say(text("This is a simple prompt for testing."))],
        "test_prompt_with_arguments": [
            say(text(f"Prompt with arguments: arg1='{args.get('arg1')}', arg2='{args.get('arg2')}'"))
        ],
        "test_prompt_with_embedded_resource": [
            say({"type": "resource", "resource": resource(args.get("resourceUri", ""), "Embedded.")}),
            say(text("Please process the embedded resource above.")),
        ],
        "test_prompt_with_image": [say(IMAGE), say(text("Please analyze the image above."))],
    }
    return {"messages": messages[params["name"]]}


CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}


METHODS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "initialize": lambda params: {
        "protocolVersion": params["protocolVersion"],
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "everything", "version": "1"},
    },
    "ping": lambda _params: {},
    "tools/list": lambda _params: list_tools(),
    "resources/list": lambda _params: list_resources(),
    "resources/read": read_resource,
    "resources/templates/list": lambda _params: {
        "resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}]
    },
    "resources/subscribe": lambda _params: {},
    "resources/unsubscribe": lambda _params: {},
    "prompts/list": lambda _params: {"prompts": PROMPTS},
    "prompts/get": get_prompt,
    "completion/complete": lambda _params: {"completion": {"values": [], "total": 0, "hasMore": False}},
    "logging/setLevel": lambda _params: {},
}


def answer(method: str, params: Any, peer: Peer) -> dict[str, Any]:
    """Return the result of a request."""
    return call_tool(params, peer) if method == "tools/call" else METHODS[method](params)


class StandardStreams:
    """A client at the other end of standard input and output."""

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send({"id": "mine", "method": method, "params": params})
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == "mine" and "method" not in message:
                return dict(message)
            self.take(message)
        raise SystemExit

    def hang_up(self) -> None:
        """There is no stream of one request here."""

    def take(self, message: dict[str, Any]) -> None:
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params", {}), self)
            self.send({"id": message["id"], "result": result})


if __name__ == "__main__":
    client = StandardStreams()
    for received in sys.stdin:
        client.take(json.loads(received))
