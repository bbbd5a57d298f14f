"""The parser of netqosctl, made from the table of its commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import netqos
from netqos.cli import values
from netqos.cli.arguments import COMMANDS, COMMON
from netqos.cli.commandform import Argument

EPILOG = (
    "exit codes: 0 done, 1 failed, 2 wrong usage, 3 daemon not reachable, 4 no such pod or override, "
    "5 input rejected, 130 interrupted"
)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """What the words ask for; wrong usage ends the process with 2, before anything else is done."""
    arguments = build_parser().parse_args(values.with_negative_values(words))
    problem = arguments.check(arguments) if arguments.check is not None else ""
    if problem:
        arguments.parser.error(problem)
    return arguments


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="netqosctl",
        description="Shows and changes what netqos does on this node.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"netqosctl {netqos.__version__}")
    for one in COMMON:
        _add(parser, one)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    for command in COMMANDS:
        # The demo has a parser of its own, which is not loaded for this.
        added = commands.add_parser(
            command.name, help=command.help, description=command.help, epilog=EPILOG, allow_abbrev=False
        )
        added.set_defaults(runs=command.runs, check=command.check, parser=added)
        for one in command.arguments:
            _add(added, one)
        for one in COMMON:
            # Common options may stand on either side of the command; here a default would undo the other side's.
            _add(added, one, keeps_silent=True)
    return parser


def _add(parser: argparse.ArgumentParser, one: Argument, *, keeps_silent: bool = False) -> None:
    help_text = one.help if one.default in (None, False, "", 0) else f"{one.help} (default: {one.default})"
    settings: dict[str, Any] = {"help": help_text.replace("%", "%%")}
    if not one.metavar and not one.choices:
        settings["action"] = "store_true"
    if one.metavar:
        settings["metavar"] = one.metavar
    if one.choices:
        settings["choices"] = one.choices
    if one.type is not None:
        settings["type"] = one.type
    if one.name.startswith("--"):
        settings["default"] = argparse.SUPPRESS if keeps_silent else one.default
        settings["dest"] = one.dest or one.name.strip("-").replace("-", "_")
    parser.add_argument(one.name, **settings)
