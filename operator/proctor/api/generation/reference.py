"""The reference of a record's fields as Markdown, from the types' own descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

HEADER = "<!-- Written by `proctor generate` from the types. Do not edit. -->\n"


def render_reference(model: type[BaseModel], title: str, intro: str) -> str:
    """Return a page with one table per record, the outermost first.

    Args:
        model: the outermost record.
        title: heading of the page.
        intro: what the record is for.
    """
    described = model.model_json_schema(by_alias=True)
    definitions: Mapping[str, Any] = described.get("$defs", {})
    sections = [_render_record(model.__name__, described, definitions)]
    sections += [
        _render_record(name, definitions[name], definitions)
        for name in _order(described, definitions)
        if "properties" in definitions[name]
    ]
    sections += [_render_words(definitions)] if any("enum" in node for node in definitions.values()) else []
    return "\n".join([HEADER, f"# {title}\n", f"{intro}\n", *sections])


def _order(root: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    """Return records in the order in which a reader meets them."""
    order: list[str] = []

    def visit(node: object) -> None:
        if isinstance(node, Mapping):
            name = str(node.get("$ref", "")).rsplit("/", 1)[-1]
            if name and name not in order:
                order.append(name)
                visit(definitions[name])
            for key, child in node.items():
                if key != "$defs":
                    visit(child)
        elif isinstance(node, list):
            for child in node:
                visit(child)

    visit(root)
    return order


def _render_record(name: str, node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    lines = [f"## {name}\n", f"{_one_line(node.get('description', ''))}\n"]
    lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
    required = node.get("required", [])
    for field, child in node.get("properties", {}).items():
        default = "required" if field in required else _default(child)
        # pydantic leaves a field's description out where it is its type's own.
        referred = definitions.get(str(child.get("$ref", "")).rsplit("/", 1)[-1], {})
        meaning = _one_line(child.get("description", referred.get("description", "")))
        cells = (f"`{field}`", _type(child, definitions), default, meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _render_words(definitions: Mapping[str, Any]) -> str:
    lines = ["## Words\n", "| type | values | meaning |", "|---|---|---|"]
    for name, node in sorted(definitions.items()):
        if "enum" in node:
            values = ", ".join(f"`{value}`" for value in node["enum"])
            lines.append(f"| {name} | {values} | {_one_line(node.get('description', ''))} |")
    return "\n".join(lines) + "\n"


def _type(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        place = "words" if "enum" in definitions.get(name, {}) else name.lower()
        return f"[{name}](#{place})"
    if "anyOf" in node:
        return " or ".join(_type(choice, definitions) for choice in node["anyOf"] if choice.get("type") != "null")
    if "oneOf" in node:
        return " or ".join(_type(choice, definitions) for choice in node["oneOf"])
    if "const" in node:
        return f"`{node['const']}`".replace("True", "true")
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    return _plain_type(node, definitions)


def _plain_type(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    match node.get("type"):
        case "array":
            size = _bounds(node, "minItems", "maxItems").strip()
            return f"list{f' ({size})' if size else ''} of {_type(node.get('items', {}), definitions)}"
        case "object":
            patterned = next(iter(node.get("patternProperties", {}).values()), None)
            values = node.get("additionalProperties") or patterned
            return f"map to {_type(values, definitions)}" if isinstance(values, Mapping) else "map"
        case "integer":
            return f"integer{_bounds(node, 'minimum', 'maximum')}"
        case "string" if node.get("format") == "date-time":
            return "instant"
        case "string":
            return f"text{_bounds(node, 'minLength', 'maxLength')}"
        case other:
            return str(other or "any")


def _bounds(node: Mapping[str, Any], low: str, high: str) -> str:
    lowest, highest = node.get(low), node.get(high)
    if highest is None:
        return "" if lowest is None else f" ≥ {lowest}"
    return f" ≤ {highest}" if lowest is None else f" {lowest}–{highest}"


def _default(node: Mapping[str, Any]) -> str:
    default = node.get("default")
    if default is None or default in ({}, [], ""):
        return "–"
    if isinstance(default, Mapping):
        return "see below"
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{text}`"


def _one_line(text: str) -> str:
    return " ".join(text.split())
