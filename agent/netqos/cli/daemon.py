"""netqosd's first step. It loads as little as can be before Ctrl-C is provided for; `daemoncommand` does the rest."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing for it would take longer than all else here
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run netqosd with the given arguments (None: the process' own) and return its exit code."""
    # ruff: noqa: PLC0415 - that is this module's purpose
    try:
        import sys

        from netqos.cli import interrupts

        interrupts.leave_at_once("netqosd")
        from netqos.cli.daemoncommand import run

        code = run(sys.argv[1:] if argv is None else argv)
        if argv is None:
            interrupts.take_no_notice()
    except KeyboardInterrupt:
        return 130
    return code


if __name__ == "__main__":
    import sys

    sys.exit(main())
