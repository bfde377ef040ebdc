"""pydantic's JSON schema → a structural OpenAPI schema, as a CRD has to have it.

Everything is inlined and closed, nothing is a float, no spec field has a default that GitOps would see as drift, and
every list, map and text has a bound, without which the API server refuses CEL rules as too costly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_KEPT = (
    *("type", "format", "description", "enum", "pattern", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "maxProperties", "required"),
)
MAX_DESCRIPTION = 300
NAMED_LISTS = frozenset({"servers", "models", "scenarios", "env", "headers"})
"""Lists whose items are told apart by `name`: server-side apply then merges item by item."""


class SchemaError(ValueError):
    """A type that a CRD can't carry."""


def build_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the structural schema of a record.

    Raises:
        SchemaError: a type has no structural form, or no bound.
    """
    described = model.model_json_schema(by_alias=True)
    return _Inliner(described.get("$defs", {})).inline(described, model.__name__)


class _Inliner:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions

    def inline(self, node: Mapping[str, Any], path: str) -> dict[str, Any]:
        node = self._resolve(node)
        if "const" in node:
            node = {**node, "enum": [node["const"]]}
        schema = {key: node[key] for key in _KEPT if key in node}
        if "description" in schema:
            schema["description"] = " ".join(schema["description"].split())[:MAX_DESCRIPTION]
        match node.get("type"):
            case "object":
                self._object(node, schema, path)
            case "array":
                self._array(node, schema, path)
            case "string":
                if "enum" not in schema and "maxLength" not in schema:
                    raise SchemaError(f"{path}: text without maxLength")
            case "integer":
                if "exclusiveMinimum" in node or "exclusiveMaximum" in node:
                    raise SchemaError(f"{path}: an exclusive bound is written otherwise in a CRD; use ge and le")
                schema |= _integer(schema)
            case "boolean":
                pass
            case other:
                raise SchemaError(f"{path}: type {other!r} has no place in a CRD")
        return schema

    def _resolve(self, node: Mapping[str, Any]) -> dict[str, Any]:
        while True:
            if "$ref" in node:
                target = self._definitions[node["$ref"].rsplit("/", 1)[1]]
                node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
            elif "anyOf" in node:
                present = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
                if len(present) != 1:
                    raise SchemaError("alternatives have no structural form")
                node = {**present[0], **{key: value for key, value in node.items() if key != "anyOf"}}
            else:
                return dict(node)

    def _object(self, node: Mapping[str, Any], schema: dict[str, Any], path: str) -> None:
        if "properties" in node:
            schema["properties"] = {
                name: self.inline(child, f"{path}.{name}") for name, child in node["properties"].items()
            }
            return
        values = node.get("additionalProperties")
        if not isinstance(values, Mapping):
            if "properties" not in node and node.get("additionalProperties") is False:
                schema["properties"] = {}
                return
            # A map whose keys have a pattern: a CRD can bound the values only.
            values = next(iter(node.get("patternProperties", {}).values()), None)
        if values is None or "maxProperties" not in schema:
            raise SchemaError(f"{path}: map without maxProperties")
        schema["additionalProperties"] = self.inline(values, f"{path}.*")

    def _array(self, node: Mapping[str, Any], schema: dict[str, Any], path: str) -> None:
        if "maxItems" not in schema:
            raise SchemaError(f"{path}: list without maxItems")
        schema["items"] = self.inline(node["items"], f"{path}[]")
        field = path.rsplit(".", 1)[-1]
        if field in NAMED_LISTS:
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        elif field == "conditions":
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
        else:
            schema["x-kubernetes-list-type"] = "atomic"


def _integer(schema: Mapping[str, Any]) -> dict[str, Any]:
    # int32 where the bounds say so; CEL and clients treat plain `integer` as 64 bits.
    high = schema.get("maximum")
    return {"format": "int64" if high is None or high >= 2**31 else "int32"}
