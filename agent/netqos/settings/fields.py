"""The types of the configuration's values: parsers in the form that the schema's models take.

Each type refuses by the same `Rejected` as the parser behind it, so that a file and an annotation say the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, PlainValidator
from pydantic_core import PydanticCustomError

from netqos.errors import Rejected
from netqos.model.inputs import Amount, Percent
from netqos.model.levels import Level
from netqos.model.quantities import parse_amount, parse_bandwidth, parse_limit
from netqos.model.texts import shown
from netqos.settings import names
from netqos.settings.matching import parse_address, parse_level
from netqos.settings.values import OnExit, Toggle

T = TypeVar("T")

ERROR_TYPE = "netqos"


def taking(parse: Callable[[object], T]) -> PlainValidator:
    """A validator that is `parse`, its `Rejected` turned into what pydantic collects."""

    def validate(value: Any) -> T:
        try:
            return parse(value)
        except Rejected as problem:
            raise PydanticCustomError(
                ERROR_TYPE, "{message}", {"message": problem.message, "hint": problem.hint}
            ) from None

    return PlainValidator(validate)


def entries(most: int) -> AfterValidator:
    """A validator of lists that must not be empty and have at most `most` entries."""

    def validate(value: Any) -> Any:
        if value is not None and not 1 <= len(value) <= most:
            words = {
                "message": f"{len(value)} entries; allowed: 1 to {most}",
                "hint": "name one, or leave the key out",
            }
            raise PydanticCustomError(ERROR_TYPE, "{message}", words)
        return value

    return AfterValidator(validate)


def ceiling_amount(value: object) -> Amount:
    """An amount; 0 is no ceiling, but 0% is refused: it reads as "nothing at all"."""
    amount = parse_amount(value)
    if amount == Percent(0):
        raise Rejected(
            f"{shown(value)} would leave the level nothing; allowed: above 0% up to 100%, or a quantity",
            hint="leave it out, or write 0, for no ceiling",
        )
    return amount


Flag = Annotated[bool, taking(names.boolean)]
Bandwidth = Annotated[int, taking(parse_bandwidth)]
Total = Annotated[tuple[int | None, bool], taking(names.total)]
Limit = Annotated[int, taking(parse_limit)]
Share = Annotated[float, taking(names.share)]
PolicyAmount = Annotated[Amount, taking(parse_amount)]
PolicyCeiling = Annotated[Amount, taking(ceiling_amount)]
LevelName = Annotated[Level, taking(parse_level)]
DnsName = Annotated[str, taking(names.dns_name)]
WorkloadName = Annotated[str, taking(names.short_name)]
Glob = Annotated[str, taking(names.matching(names.GLOB, "a-z, 0-9, -, . and the patterns *, ?, [...]"))]
ClassName = Annotated[str, taking(names.matching(names.CLASS, "letters, digits, -, _ and ., up to 63"))]
EntryPoint = Annotated[
    str,
    taking(names.matching(names.ENTRY_POINT, "the name of a backend, as netqosd --list-backends shows it")),
]
Interface = Annotated[str, taking(names.interface)]
Directory = Annotated[str, taking(names.absolute_path)]
SocketPath = Annotated[str, taking(names.socket_path)]
CgroupName = Annotated[str, taking(names.cgroup)]
UnitName = Annotated[str, taking(names.unit)]
HostAddress = Annotated[str, taking(parse_address)]
ListenAddress = Annotated[str | None, taking(names.listen_address)]
DscpRange = Annotated[tuple[int, int], taking(names.dscp_range)]
Interval = Annotated[float, taking(names.duration(0.005, 10.0))]
Hold = Annotated[float, taking(names.duration(0.0, 60.0))]
ToggleWord = Annotated[Toggle, taking(names.toggle)]
LogLevel = Annotated[str, taking(names.one_of("debug", "info", "warning", "error"))]
LogFormat = Annotated[str, taking(names.one_of("auto", "text", "json"))]
Exit = Annotated[OnExit, taking(names.on_exit)]
