"""The backends in this process: which are made, which are in use, and which only have to clean up after themselves.

A backend is made when it is in use, or was in use before (the state folder remembers): then it is asked once for
nothing at all, which removes its leftovers. Changed options make it anew; what it enforces stays meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from netqos.backend import Backend, StateStore
from netqos.model.health import Finding
from netqos.runtime.runner import BackendRunner
from netqos.settings.values import Settings

USED = "backends-used"

BuildBackends = Callable[[Settings, Iterable[str]], tuple[list[Backend], list[Finding]]]


class Fleet:
    """All runners by backend name, in order of use."""

    def __init__(
        self, *, build: BuildBackends, make_runner: Callable[[Backend], BackendRunner], state: StateStore
    ) -> None:
        """`build` makes backends from settings, `make_runner` puts one under a runner with a loop of its own."""
        self.runners: dict[str, BackendRunner] = {}
        self.findings: tuple[Finding, ...] = ()
        self._build = build
        self._make_runner = make_runner
        self._state = state
        self._used = _remembered(state.load(USED))
        self._made_from: tuple[tuple[str, ...], Mapping[str, Mapping[str, object]]] | None = None

    async def ensure(self, settings: Settings, wanted: tuple[str, ...]) -> None:
        """Have a runner for every wanted backend that can be made, and for those with leftovers."""
        made_from = (wanted, settings.backend_options)
        if made_from == self._made_from:
            return
        await self._close_changed(settings)
        names = self._names(wanted)
        backends, findings = self._build(settings, [name for name in names if name not in self.runners])
        known = {**self.runners, **{backend.name: self._make_runner(backend) for backend in backends}}
        self.runners = {name: known[name] for name in names if name in known}
        self.findings = tuple(findings)
        self._remember(wanted)
        self._made_from = made_from

    async def close(self) -> None:
        """Let go of every backend."""
        for runner in self.runners.values():
            await runner.close()

    def _names(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*wanted, *self._used)))

    async def _close_changed(self, settings: Settings) -> None:
        if self._made_from is None:
            return
        before = self._made_from[1]
        for name in [
            one for one in self.runners if before.get(one, {}) != settings.backend_options.get(one, {})
        ]:
            await self.runners.pop(name).close()

    def _remember(self, wanted: tuple[str, ...]) -> None:
        self._used = self._names(wanted)
        self._state.save(USED, list(self._used))


def _remembered(document: object) -> tuple[str, ...]:
    return tuple(one for one in document if isinstance(one, str)) if isinstance(document, list) else ()
