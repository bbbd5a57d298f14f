"""The OpenAPI 3.1 document of the status socket, made from its table of routes and its models.

`python -m netqos.observe.openapi` prints it; docs/openapi.json holds it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable

import netqos
from netqos.observe import wire
from netqos.observe.statusroutes import ROUTES, Parameter, Route

Json = dict[str, object]

WORDS = {
    403: "Changing needs uid 0 at the other end of the socket",
    404: "No such pod or override",
    409: "Two pods bear this name",
    415: "The body is no JSON",
    422: "A value is rejected; `problems` lists every one",
    503: "Not now; try again",
}


def document() -> bytes:
    """The whole document as JSON text."""
    schemas = _schemas()
    paths: dict[str, Json] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    whole: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "netqos status socket",
            "version": wire.API,
            "summary": f"HTTP over a Unix socket, as served by netqosd {netqos.__version__}",
        },
        "servers": [
            {"url": "http://netqos", "description": "the Unix socket, /run/netqos/netqosd.sock by default"}
        ],
        "paths": paths,
        "components": {"schemas": schemas, "responses": {"Error": _error()}},
    }
    return json.dumps(whole, indent=2).encode("ascii") + b"\n"


def _schemas() -> dict[str, Json]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - loaded when the document is asked for

    schemas: dict[str, Json] = {}
    for model in _models(ROUTES):
        schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    return {name: _closed(_untitled(schemas[name])) for name in sorted(schemas)}


def _models(routes: Iterable[Route]) -> list[type]:
    used = [model for route in routes for model in (route.answer, route.body) if model is not None]
    return list(dict.fromkeys([*used, wire.ErrorWire]))


def _closed(schema: Json) -> Json:
    """Every model says all of its fields: what is not listed is not sent."""
    return {**schema, "additionalProperties": False}


def _untitled(schema: Json) -> Json:
    """Without the titles that pydantic makes from names: they say nothing more."""
    return {
        key: _untitled(value) if isinstance(value, dict) else value
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _operation(route: Route) -> Json:
    codes = sorted({*route.errors, *((403,) if route.changes else ())})
    errors = {str(code): {**_error(), "description": WORDS[code]} for code in codes}
    operation: Json = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*_path_parameters(route.path), *map(_query_parameter, route.query)],
        "responses": {
            "200": _content("Done", route),
            **errors,
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    if route.body is not None:
        body = {"application/json": {"schema": _reference(route.body)}}
        operation["requestBody"] = {"required": True, "content": body}
    return operation


def _path_parameters(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameter(parameter: Parameter) -> Json:
    schema: Json = {"type": "string"}
    if parameter.values:
        schema["enum"] = list(parameter.values)
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.text,
        "schema": schema,
    }


def _content(description: str, route: Route) -> Json:
    schema: Json = _reference(route.answer) if route.answer is not None else {"type": "object"}
    return {"description": description, "content": {route.content_type: {"schema": schema}}}


def _error() -> Json:
    return {
        "description": "The request was refused or failed",
        "content": {"application/json": {"schema": _reference(wire.ErrorWire)}},
    }


def _reference(model: type) -> Json:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


if __name__ == "__main__":
    sys.stdout.buffer.write(document())
