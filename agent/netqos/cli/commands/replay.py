"""netqosctl replay: recorded rounds run again through the loop's own step, also under another policy.

No daemon is asked. With the recorded policies the decisions must be the recorded ones; it is an error where they are
not. With another policy it is told what would have been decided of the same samples.
"""

from __future__ import annotations

from pathlib import Path

from netqos.cli.client import InputRejected
from netqos.cli.commands.common import DONE, FAILED, Call
from netqos.cli.progress import Progress
from netqos.cli.recordlines import RecordedLines
from netqos.cli.replayview import as_json, show
from netqos.engine.otherpolicy import policies_under
from netqos.engine.recording import Policies, RoundReader
from netqos.engine.replay import Change, Replay
from netqos.errors import Rejected
from netqos.settings.values import Settings

LONGEST_POLICY = 1 << 20


def run(call: Call) -> int:
    """Replay a file and show what came of it."""
    path, policy = Path(call.arguments.file), call.arguments.policy
    replay = Replay(_change(policy) if policy is not None else None)
    with RecordedLines(path) as lines, Progress(call.screen.talk) as progress:
        try:
            for entry in RoundReader().read(lines):
                replay.take(entry)
                progress.tell(path.name, lines.share)
        except Rejected as problem:
            raise InputRejected(f"{path} {problem.subject}: {problem.message}", hint=problem.hint) from None
    if not replay.found.heads:
        raise InputRejected(f"{path} is empty: no recording", hint="netqosctl record FILE makes one")
    if lines.cut_off:
        call.screen.say(f"{path} line {lines.cut_off} is cut off; what stands before it is replayed")
    if call.wants_json:
        call.screen.json("replay", as_json(replay.found, compares=policy is not None))
    else:
        show(call.screen, replay.found, compares=policy is not None, most=call.arguments.most)
    return FAILED if replay.found.unequal_count else DONE


def _change(name: str) -> Change:
    """What the policy of a configuration file makes of recorded ones."""
    settings = _settings(name)

    def changed(recorded: Policies) -> Policies:
        try:
            return policies_under(settings, recorded)
        except Rejected as problem:
            raise _wrong(name, problem) from None

    return changed


def _settings(name: str) -> Settings:
    from netqos.settings.file import parse_documents  # noqa: PLC0415 - pydantic, for those who give a policy

    try:
        with Path(name).open("rb") as file:
            text = file.read(LONGEST_POLICY + 1)
        if len(text) > LONGEST_POLICY:
            raise InputRejected(f"{name} is longer than {LONGEST_POLICY >> 20} MiB", hint="name another file")
        return parse_documents([(name, text.decode())])
    except OSError as problem:
        raise InputRejected(f"{name} cannot be read: {problem.strerror}", hint="name another file") from None
    except UnicodeDecodeError:
        hint = "a policy is YAML, as netqosd's configuration"
        raise InputRejected(f"{name} is no text", hint=hint) from None
    except Rejected as problem:
        raise _wrong(name, problem) from None


def _wrong(name: str, problem: Rejected) -> InputRejected:
    problems = problem.problems or (problem.message,)
    return InputRejected(f"the policy in {name} is wrong", hint=f"correct {name}", problems=problems)
