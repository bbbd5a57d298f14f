"""netqosctl history: what the loop and the watch of the paths decided in the last minutes, and why."""

from __future__ import annotations

from operator import itemgetter

from netqos.cli.commands.common import DONE, Call, known_shape
from netqos.cli.decisions import show_decision, show_step
from netqos.cli.units import span

DIRECTIONS = {"egress": "tx", "ingress": "rx"}


def run(call: Call) -> int:
    """Show the decisions that changed something, or all that are remembered."""
    arguments = call.arguments
    query = {"since_s": f"{arguments.since:.6f}"}
    if arguments.direction is not None:
        query["direction"] = DIRECTIONS[arguments.direction]
    if arguments.unit is not None:
        query["device"] = arguments.unit
    if not arguments.all:
        query["changes"] = "true"
    answer = call.client.get("/v1/history", **query)
    if call.wants_json:
        call.screen.json("history", answer)
        return DONE
    with known_shape():
        told = [(one["at_s"], show_step, one) for one in answer["steps"]]
        told += [(one["at_s"], show_decision, one) for one in answer["decisions"]]
        for _at_s, show, one in sorted(told, key=itemgetter(0)):
            show(call.screen, one)
        if not told:
            what = "nothing was decided" if arguments.all else "nothing was changed"
            hint = "" if arguments.all else "--all shows what was decided in between too"
            call.screen.say(f"{what} in the last {span(arguments.since)}", hint=hint)
    return DONE
