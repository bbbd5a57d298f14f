"""The parts of a daemon, made from settings: nothing here runs, waits or touches the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from netqos.backend import Backend, FastPath
from netqos.engine.pathlimits import recalled
from netqos.engine.totals import ANNOTATION
from netqos.engine.unitstate import LoopPolicy
from netqos.engine.why import Ground
from netqos.host.clock import Clock
from netqos.host.memory import AgentMemory
from netqos.host.node import node_name
from netqos.host.state import StateFolder
from netqos.model.composed import LastGood
from netqos.model.desired import DesiredState
from netqos.model.inputs import NodeFacts
from netqos.model.traffic import Unit
from netqos.observe.logs import get_logger
from netqos.observe.recorder import Recorder
from netqos.runtime.backends import build_backends, make_context
from netqos.runtime.fastloop import FastLoop
from netqos.runtime.fleet import Fleet
from netqos.runtime.losscounter import loss_counter
from netqos.runtime.overrides import OverrideBook
from netqos.runtime.pathwatch import PathWatch
from netqos.runtime.published import NAME as FILES
from netqos.runtime.published import PublishedFiles
from netqos.runtime.reconciler import PassReport, Reconciler, World, loop_policies
from netqos.runtime.runner import BackendRunner
from netqos.runtime.store import Cell, Wake
from netqos.settings.values import Settings, Toggle

OnTick = Callable[[tuple[Ground, ...]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Whom the parts tell what happens; all are called often and must return at once.

    `on_tick(decided)`, `on_rest()` (nothing is left to steer) and `wake()` are called from the loops' threads;
    `on_loop(name, loop)` with each new loop.
    """

    on_tick: OnTick = lambda _decided: None
    on_loop: Callable[[str, FastLoop], None] = lambda _name, _loop: None
    on_rest: Callable[[], None] = lambda: None
    on_pass: Callable[[PassReport], None] = lambda _report: None
    wake: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that the modes of the daemon put to work."""

    node: str
    clock: Clock
    state: StateFolder
    memory: AgentMemory
    recorder: Recorder
    world: World
    reconciler: Reconciler
    watch: PathWatch


def make_parts(settings: Settings, clock: Clock, hooks: Hooks) -> Parts:
    """Make the parts; what the state folder remembers is read, nothing else.

    With Kubernetes the last accepted NodeSLO and annotation hold until their sources deliver (contract 1.8).
    """
    state = StateFolder(Path(settings.paths.state), log=get_logger("netqos.state").warning)
    memory, recorder, wake = AgentMemory(state), Recorder(), Wake()
    name, remembered = node_name(settings), memory.last_good.load()
    follows = settings.kubernetes.enable is Toggle.ON
    world = World(
        wake=wake,
        settings=Cell(settings, wake=wake),
        node=Cell(NodeFacts(name=name), wake=wake),
        workloads=Cell((), wake=wake),
        pods=Cell((), wake=wake),
        slo=Cell(remembered.policy if follows else None, wake=wake),
        bandwidth_annotation=Cell(_remembered_annotation(remembered) if follows else None, wake=wake),
        complete=Cell(not follows, wake=wake),
        path_limits=Cell(recalled(memory.path_limits.load()), wake=wake),
    )
    watch = PathWatch(limits=world.path_limits, settings=world.settings, clock=clock, counter=loss_counter)

    watched = replace(hooks, on_tick=_both(watch.tick, hooks.on_tick))

    def make_runner(backend: Backend) -> BackendRunner:
        return _runner(backend, world=world, clock=clock, recorder=recorder, hooks=watched)

    reconciler = Reconciler(
        world=world,
        book=OverrideBook(memory.overrides.load(), clock),
        clock=clock,
        fleet=Fleet(build=build_backends, make_runner=make_runner, state=state),
        publisher=make_runner(PublishedFiles(make_context(settings, FILES), settings.paths.net)),
        last_good=remembered,
        on_pass=hooks.on_pass,
    )
    return Parts(
        node=name,
        clock=clock,
        state=state,
        memory=memory,
        recorder=recorder,
        world=world,
        reconciler=reconciler,
        watch=watch,
    )


def _both(first: OnTick, second: OnTick) -> OnTick:
    def tell(decided: tuple[Ground, ...]) -> None:
        first(decided)
        second(decided)

    return tell


def _remembered_annotation(remembered: LastGood) -> str | None:
    """The Node's annotation as it was last accepted, which is the same in both directions."""
    total = remembered.totals.tx
    return str(total[0]) if total is not None and total[1] == ANNOTATION else None


def _runner(
    backend: Backend, *, world: World, clock: Clock, recorder: Recorder, hooks: Hooks
) -> BackendRunner:
    """A backend under a runner, with a loop of its own."""

    def on_tick(decided: tuple[Ground, ...], late_s: float, took_s: float) -> None:
        recorder.tick(late_s=late_s, took_s=took_s)
        hooks.on_tick(decided)

    def on_lost(reason: str) -> None:
        get_logger("netqos.loop").warning("path_lost", backend=backend.name, reason=reason)
        runner.look_again()
        hooks.wake()

    def policies(desired: DesiredState, path: FastPath) -> Mapping[Unit, LoopPolicy]:
        return loop_policies(desired, path, world.settings.value.loop)

    loop = FastLoop(
        backend.name, world.settings.value.loop, on_lost=on_lost, on_tick=on_tick, on_rest=hooks.on_rest
    )
    hooks.on_loop(backend.name, loop)
    runner = BackendRunner(backend, loop, policies, clock)
    return runner
