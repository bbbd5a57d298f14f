"""What all maps of the configuration file have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """A map of the file: unknown keys are errors, null is as good as absent except for `keeps_null`."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)
    keeps_null: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        droppable = {field.alias for field in cls.model_fields.values()} - cls.keeps_null
        return {key: one for key, one in value.items() if one is not None or key not in droppable}
