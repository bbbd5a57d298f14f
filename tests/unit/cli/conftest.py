"""Commands that work without the daemon lead the process' log to stderr; a test's process goes on afterwards."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    hooks, handlers, level = (
        (sys.excepthook, threading.excepthook),
        logging.root.handlers[:],
        logging.root.level,
    )
    is_installed = structlog.is_configured()
    yield
    if structlog.is_configured() and not is_installed:
        structlog.reset_defaults()
        logging.captureWarnings(capture=False)
        (sys.excepthook, threading.excepthook), logging.root.handlers = hooks, handlers
        logging.root.setLevel(level)
