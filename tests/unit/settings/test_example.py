"""The example configuration documents every key, and says nothing but the truth about the defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

import netqos_tc.options
import netqos_terway.options
from netqos.settings.file import parse_documents
from netqos.settings.issues import Path as KeyPath
from netqos.settings.nodes import Node
from netqos.settings.schema import Config
from netqos.settings.values import Settings
from netqos.settings.yamltext import read_yaml

EXAMPLE = (Path(__file__).parents[3] / "systemd" / "netqos.yaml").read_text()
SHAPES = ("levels", "networkQOSStrategy", "resourceQOSStrategy")
_SAMPLE = re.compile(r"^( *)#(?=\S|  )", re.MULTILINE)
"""The mark before a key that is not set by default; before prose it is followed by one space."""


def with_samples() -> dict[str, Any]:
    """The example with all its samples switched on."""
    root, problems = read_yaml(_SAMPLE.sub(r"\1", EXAMPLE), "netqos.yaml")
    assert problems == ()
    assert root is not None
    tree = root.plain()
    assert isinstance(tree, dict)
    return tree


def keys_of_schema(model: type[BaseModel], above: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key with its place; the entries of lists and free maps are the step `*`."""
    for field in model.model_fields.values():
        assert field.alias is not None
        yield (*above, field.alias)
        yield from _below(field.annotation, (*above, field.alias))


def _below(annotation: Any, path: KeyPath) -> Iterator[KeyPath]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from keys_of_schema(annotation, path)
    is_many = getattr(annotation, "__origin__", None) in {tuple, dict}
    for argument in get_args(annotation):
        yield from _below(argument, (*path, "*") if is_many else path)


def keys_of_tree(tree: object, above: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key of a tree, in the same form."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield (*above, key)
            yield from keys_of_tree(value, (*above, key))
    elif isinstance(tree, list):
        for value in tree:
            yield from keys_of_tree(value, (*above, "*"))


def leaves(tree: dict[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Every value that is no map, with its place."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, key))
        else:
            yield (*above, key), value


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every model behind an annotation, itself included."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    for argument in get_args(annotation):
        yield from models(argument)


def test_what_is_not_commented_out_is_the_default() -> None:
    assert parse_documents([("netqos.yaml", EXAMPLE)]) == Settings()


def test_every_default_that_is_a_value_is_written_out() -> None:
    root, _ = read_yaml(EXAMPLE, "netqos.yaml")
    assert isinstance(root, Node)
    written = set(keys_of_tree(root.plain()))
    defaults = Config().model_dump(by_alias=True)
    values = {path for path, value in leaves(defaults) if value is not None and value != ()}
    assert values - written == set()


def test_every_key_of_the_schema_is_in_the_example() -> None:
    assert set(keys_of_schema(Config)) - set(keys_of_tree(with_samples())) == set()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_samples_are_a_valid_configuration_with_either_shape_of_the_policy(shape: str) -> None:
    tree = with_samples()
    for other in set(SHAPES) - {shape}:
        del tree["policy"][other]
    settings = parse_documents([("netqos.yaml", yaml.safe_dump(tree))])
    assert settings.policy.enabled is True
    assert [workload.name for workload in settings.workloads] == ["web", "backup", "mail"]


def test_the_samples_of_backend_options_are_valid() -> None:
    options = with_samples()["backendOptions"]
    netqos_tc.options.parse(options["tc"])
    netqos_terway.options.parse(options["terway"])


def test_every_key_is_described() -> None:
    for model in models(Config):
        assert all(field.description for field in model.model_fields.values()), model
