"""An MCP server over standard streams with one of everything that the official conformance suite asks for."""

from __future__ import annotations

import json
import sys
from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


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
    "test_sampling": [],
    "test_elicitation": [],
}
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


def list_tools(_id: Any, _params: Any) -> dict[str, Any]:
    plain = {"type": "object", "properties": {}}
    return {
        "tools": [
            {"name": name, "description": f"Shows {name}.", "inputSchema": SCHEMA if name.startswith("json") else plain}
            for name in CONTENT
        ]
    }


def call_tool(_id: Any, params: Any) -> dict[str, Any]:
    name = params["name"]
    if name == "test_tool_with_logging":
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            send({"method": "notifications/message", "params": {"level": "info", "data": words}})
    if name == "test_tool_with_progress":
        token = params.get("_meta", {}).get("progressToken")
        for done in (0, 50, 100):
            told = {"progressToken": token, "progress": done, "total": 100}
            send({"method": "notifications/progress", "params": told})
    if name in ("test_sampling", "test_elicitation"):
        method = "sampling/createMessage" if name == "test_sampling" else "elicitation/create"
        send({"id": "mine", "method": method, "params": {}})
        return {"content": [text(sys.stdin.readline())], "isError": True}
    return {"content": CONTENT[name], "isError": name == "test_error_handling"}


def list_resources(_id: Any, _params: Any) -> dict[str, Any]:
    uris = ("test://static-text", "test://static-binary", "test://watched-resource")
    return {"resources": [{"uri": uri, "name": uri[7:], "description": "For tests.", "mimeType": "x"} for uri in uris]}


def read_resource(_id: Any, params: Any) -> dict[str, Any]:
    uri = params["uri"]
    if uri == "test://static-binary":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PNG}]}
    if uri.startswith("test://template/"):
        value = json.dumps({"id": uri.split("/")[3], "templateTest": True, "data": f"Data for ID: {uri.split('/')[3]}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": value}]}
    return {"contents": [resource(uri, "This is the content of the static text resource.")]}


def get_prompt(_id: Any, params: Any) -> dict[str, Any]:
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


METHODS = {
    "initialize": lambda _id, params: {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "logging": {},
            "completions": {},
        },
        "serverInfo": {"name": "everything", "version": "1"},
    },
    "ping": lambda _id, _params: {},
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": list_resources,
    "resources/read": read_resource,
    "resources/templates/list": lambda _id, _params: {
        "resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}]
    },
    "resources/subscribe": lambda _id, _params: {},
    "resources/unsubscribe": lambda _id, _params: {},
    "prompts/list": lambda _id, _params: {"prompts": PROMPTS},
    "prompts/get": get_prompt,
    "completion/complete": lambda _id, _params: {"completion": {"values": [], "total": 0, "hasMore": False}},
    "logging/setLevel": lambda _id, _params: {},
}

if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            send({"id": message["id"], "result": METHODS[message["method"]](message["id"], message.get("params", {}))})
