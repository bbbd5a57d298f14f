"""The demo: `main(argv)` is `netqosctl demo`."""

from __future__ import annotations

from netqos.cli.demo.command import main

__all__ = ["main"]
