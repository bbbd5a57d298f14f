"""The backends in this process: which are made, which are in use, and which only have to clean up after themselves.

A backend is made when it is in use, or when it enforced something before (the state folder remembers): then it is
asked for nothing at all, which removes its leftovers, and is forgotten. Changed options make it anew; what it enforces
stays meanwhile, and a backend that cannot be made anew goes on as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from netqos.backend import Backend, StateStore
from netqos.model.health import Finding
from netqos.runtime.runner import BackendRunner
from netqos.settings.values import Settings

USED = "backends-used"

BuildBackends = Callable[[Settings, Iterable[str]], tuple[list[Backend], list[Finding]]]
Options = Mapping[str, object]


class Fleet:
    """All runners by backend name: those in use in their order, then those with leftovers."""

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
        self._options: dict[str, Options] = {}
        self._made_for: tuple[tuple[str, ...], Mapping[str, Options]] | None = None

    async def ensure(self, settings: Settings, wanted: tuple[str, ...]) -> None:
        """Have a runner for every wanted backend that can be made, and for those with leftovers."""
        made_for = (wanted, settings.backend_options)
        if made_for == self._made_for:
            return
        names = tuple(dict.fromkeys((*wanted, *self._used)))
        backends, findings = self._build(settings, [name for name in names if self._is_due(name, settings)])
        known = dict(self.runners)
        for backend in backends:
            if backend.name in known:
                await known[backend.name].close()
            known[backend.name] = self._make_runner(backend)
            self._options[backend.name] = settings.backend_options.get(backend.name, {})
        for name in known.keys() - set(names):
            await known[name].close()
        self.runners = {name: known[name] for name in names if name in known}
        self.findings = tuple(findings)
        self._made_for = made_for

    def mark_used(self, name: str) -> None:
        """Remember, before it enforces anything, that a backend may leave something behind."""
        if name not in self._used:
            self._used = (*self._used, name)
            self.remember()

    def remember(self) -> None:
        """Write which backends may have left something behind, unless that is written."""
        self._state.save(USED, list(self._used))

    async def forget(self, name: str) -> None:
        """A backend has removed its leftovers: let go of it."""
        self._used = tuple(one for one in self._used if one != name)
        self.remember()
        await self.runners.pop(name).close()

    async def close(self) -> None:
        """Let go of every backend."""
        for runner in self.runners.values():
            await runner.close()

    def _is_due(self, name: str, settings: Settings) -> bool:
        return name not in self.runners or self._options[name] != settings.backend_options.get(name, {})


def _remembered(document: object) -> tuple[str, ...]:
    return tuple(one for one in document if isinstance(one, str)) if isinstance(document, list) else ()
