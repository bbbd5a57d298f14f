"""The part of JSON Schema that the OpenAPI document uses, checked by hand; anything else in it is an error here."""

from __future__ import annotations

from typing import Any

KNOWN = {
    "$ref",
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "items",
    "properties",
    "propertyNames",
    "required",
    "type",
}
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def problems(value: Any, schema: dict[str, Any], document: dict[str, Any], where: str = "$") -> list[str]:
    """What is wrong with `value`, each with its place; empty when it fits."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return problems(value, document["components"]["schemas"][name], document, where)
    if "anyOf" in schema:
        tried = [problems(value, one, document, where) for one in schema["anyOf"]]
        return [] if [] in tried else [line for one in tried for line in one]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    kind = schema.get("type")
    if kind is not None and (
        not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")
    ):
        return [f"{where}: {value!r} is no {kind}"]
    if isinstance(value, list):
        return [
            line
            for i, one in enumerate(value)
            for line in problems(one, schema["items"], document, f"{where}[{i}]")
        ]
    if isinstance(value, dict):
        return _object_problems(value, schema, document, where)
    return []


def _object_problems(value: Any, schema: dict[str, Any], document: dict[str, Any], where: str) -> list[str]:
    fields = schema.get("properties", {})
    more = schema.get("additionalProperties", True)
    found = [f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value]
    for name, one in value.items():
        if name in fields:
            found += problems(one, fields[name], document, f"{where}.{name}")
        elif more is False:
            found.append(f"{where}: {name} is unknown")
        elif isinstance(more, dict):
            found += problems(name, schema.get("propertyNames", {}), document, f"{where}.{name}")
            found += problems(one, more, document, f"{where}.{name}")
    return found
