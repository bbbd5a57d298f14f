"""The log: one event a line, key-values, on stderr; text for a terminal, JSON lines for everything else.

Nobody waits for it. A caller renders its line and leaves it in a bounded queue, a thread of its own writes; what does
not fit, because a pipe is full or a disk stalls, is dropped, counted and told once the way is free again.
Libraries that use the standard `logging` and exceptions that nobody caught come out the same way.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, MutableMapping
from types import TracebackType
from typing import Any

from netqos.observe.loglines import LEVELS, render_json, render_text, syslog_prefix
from netqos.observe.logwriter import LineWriter
from netqos.settings.values import LogSettings

# structlog imports rich where that is installed: 17 MiB and 130 ms that a daemon has no use for.
_hides_rich = "rich" not in sys.modules
if _hides_rich:
    sys.modules["rich"] = None  # type: ignore[assignment]  # importlib's documented way to forbid an import
import structlog  # noqa: E402

if _hides_rich:
    del sys.modules["rich"]

EventDict = MutableMapping[str, Any]
Render = Callable[[EventDict], str]


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger by its dotted name; it may be made before `Logs` is installed."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(name)
    return logger


class Logs:
    """Where the lines of this process go."""

    def __init__(self, settings: LogSettings, *, descriptor: int = 2) -> None:
        """Start the writer to `descriptor`; `install` makes everybody use it."""
        self._writer = LineWriter(descriptor, report=self._report_dropped)
        self._descriptor = descriptor
        self._prefix = syslog_prefix if _is_journal(descriptor) else None
        self._threshold = 0
        self._render: Render = render_json
        self.apply(settings)

    @property
    def dropped(self) -> int:
        """Lines that could not be written since the start."""
        return self._writer.dropped

    def apply(self, settings: LogSettings) -> None:
        """Take another level or format from now on."""
        self._threshold = LEVELS[settings.level]
        is_text = settings.format == "text" or (settings.format == "auto" and _is_terminal(self._descriptor))
        self._render = render_text if is_text else render_json

    def install(self) -> None:
        """Lead structlog, the standard `logging`, warnings and uncaught exceptions here."""
        structlog.configure(
            processors=[self._filter, _add_place, structlog.processors.format_exc_info, self._finish],
            wrapper_class=structlog.stdlib.BoundLogger,
            logger_factory=lambda *names: _Sink(names[0] if names else "netqos", self._writer.put),
            cache_logger_on_first_use=False,
        )
        logging.basicConfig(handlers=[_LibraryHandler()], level=logging.WARNING, force=True)
        logging.captureWarnings(capture=True)
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_thread_uncaught

    def close(self, deadline_s: float = 1.0) -> None:
        """Write what waits, for at most `deadline_s`; lines that come later are dropped."""
        self._writer.close(deadline_s)

    def _filter(self, _logger: object, method: str, event: EventDict) -> EventDict:
        level = "error" if method == "exception" else method
        if LEVELS.get(level, LEVELS["error"]) < self._threshold:
            raise structlog.DropEvent
        event["level"] = level
        return event

    def _finish(self, _logger: object, _method: str, event: EventDict) -> str:
        prefix = self._prefix(str(event["level"])) if self._prefix else ""
        return prefix + self._render(event)

    def _report_dropped(self, count: int) -> str:
        event = {"event": "log-lines-dropped", "level": "warning", "logger": "netqos.logs", "count": count}
        return self._finish(None, "warning", event)


class _Sink:
    """What structlog calls with the finished line."""

    def __init__(self, name: str, put: Callable[[str], None]) -> None:
        self.name = name
        self.debug = self.info = self.warning = self.error = self.critical = self.exception = put


class _LibraryHandler(logging.Handler):
    """Hands on what a library says through the standard `logging`."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = get_logger(record.name)
        speak = {"DEBUG": logger.debug, "INFO": logger.info, "WARNING": logger.warning}
        with_trace = record.exc_info if record.exc_info and record.exc_info[0] else None
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        speak.get(record.levelname, logger.error)("library", message=message, exc_info=with_trace)


def _add_place(logger: Any, _method: str, event: EventDict) -> EventDict:
    event["logger"] = getattr(logger, "name", "netqos")
    return event


def _log_uncaught(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    get_logger("netqos").critical("uncaught-exception", exc_info=(kind, problem, trace))


def _log_thread_uncaught(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is None or issubclass(found.exc_type, SystemExit):
        return
    thread = found.thread.name if found.thread else ""
    trace = (found.exc_type, found.exc_value, found.exc_traceback)
    get_logger("netqos").critical("uncaught-exception", thread=thread, exc_info=trace)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _is_journal(descriptor: int) -> bool:
    """Whether the journal reads this descriptor: it says so with the device and inode (systemd.exec(5))."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
