"""Serving the status socket, and keeping its file where clients look for it."""

from __future__ import annotations

import asyncio

from netqos.errors import Fatal
from netqos.host.clock import Clock
from netqos.observe.httpserver import HttpServer, Limits
from netqos.observe.listen import UnixListener
from netqos.observe.logs import get_logger
from netqos.observe.recorder import Recorder
from netqos.observe.statusapi import StatusApi
from netqos.observe.view import Agent

LOOK_S = 2.0
"""How often the socket's file is looked after: cleaners of /run and /tmp remove such files."""


async def serve_status(
    listener: UnixListener,
    agent: Agent,
    clock: Clock,
    *,
    recorder: Recorder | None = None,
    limits: Limits | None = None,
    look_s: float = LOOK_S,
) -> None:
    """Serve until cancelled; the socket's file is then removed if it is still ours.

    Make the listener early: that a second daemon runs is found out there, before anything was touched.
    """
    server = HttpServer("status", StatusApi(agent, clock, recorder).router(), limits=limits)
    try:
        while True:
            listener = await _serve_until_lost(server, listener, look_s)
    finally:
        listener.close()


async def _serve_until_lost(server: HttpServer, listener: UnixListener, look_s: float) -> UnixListener:
    """Serve until somebody removed the file; returns the listener with a new one."""
    serving = asyncio.create_task(server.serve(listener.socket), name="status-socket")
    told = False
    try:
        while True:
            await asyncio.wait({serving}, timeout=look_s)
            if serving.done():
                serving.result()
            if not listener.is_in_place():
                try:
                    return await asyncio.to_thread(UnixListener, listener.path)
                except Fatal as problem:
                    _tell_once("socket_file_lost", str(problem), told=told)
                    told = True
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def _tell_once(event: str, problem: str, *, told: bool) -> None:
    if not told:
        get_logger("netqos.status").warning(event, problem=problem)
