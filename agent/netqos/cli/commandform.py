"""What a command of netqosctl and an argument of one are, for the table of all."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An option, or a positional argument where `name` has no dashes. Without `metavar` and `choices` it is a flag."""

    name: str
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: Any = None
    type: Callable[[str], Any] | None = None
    dest: str = ""
    is_pod: bool = False
    is_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command; `runs` is its module below netqos.cli.commands and the function there."""

    name: str
    runs: str
    help: str
    arguments: tuple[Argument, ...] = ()
    check: Callable[[argparse.Namespace], str] | None = None
    """What is wrong with the arguments together; empty where nothing is."""
