"""What pydantic found wrong in a tree -> issues in our words: the value met, what is allowed, the next step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from netqos.model.texts import shown
from netqos.settings.fields import ERROR_TYPE
from netqos.settings.issues import Code, Issue, Path, unknown_key

WRONG_KEY = "[key]"
"""What pydantic puts at the end of a place when the key is wrong, not the value."""

_NO_MAP = frozenset({"model_type", "model_attributes_type", "dict_type"})
_NO_LIST = frozenset({"tuple_type", "list_type"})


def issues_of(error: ValidationError, model: type[BaseModel]) -> Iterator[Issue]:
    """Every problem of one validation of `model`, in the order of its fields."""
    for detail in error.errors(include_url=False):
        is_unknown = detail["type"] == "extra_forbidden"
        message, hint = _words(detail, model)
        yield Issue(
            code=Code.UNKNOWN_KEY if is_unknown else Code.POLICY,
            path=tuple(step for step in detail["loc"] if step != WRONG_KEY),
            message=message,
            hint=hint,
        )


def keys_at(model: type[BaseModel], path: Path) -> list[str]:
    """The keys of the map at a path below `model`; empty where the keys are free."""
    inner: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, str) and inner is not None:
            inner = _inner(inner, step)
    return [] if inner is None else [field.alias or name for name, field in inner.model_fields.items()]


def _words(detail: ErrorDetails, model: type[BaseModel]) -> tuple[str, str]:
    """Message and hint of one error."""
    kind, path, met = detail["type"], detail["loc"], shown(detail["input"])
    if kind == ERROR_TYPE:
        context = detail["ctx"]
        return str(context["message"]), str(context["hint"])
    if kind == "extra_forbidden":
        return unknown_key(str(path[-1]), keys_at(model, path[:-1])), "correct or remove it"
    if kind == "missing":
        return f"missing; every entry needs {path[-1]}", "add it"
    if kind in _NO_MAP:
        keys = keys_at(model, path)
        allowed = f"a map of {', '.join(keys)}" if keys else "a map"
        return f"{met} is no map; allowed: {allowed}", "indent its keys below it"
    if kind in _NO_LIST:
        return f"{met} is no list; allowed: a list", "write [one, two], or one entry a line with a hyphen"
    return f"{met}: {detail['msg']}", "correct the value"


def _inner(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """The model behind a key, through optional values, lists and annotations."""
    for field in model.model_fields.values():
        if field.alias == key:
            return next(_models(field.annotation), None)
    return None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
