"""Runs a process in the event loop that the settings choose."""

import asyncio
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, TypeVar

from gateway.settings import Settings, StartRefused

T = TypeVar("T")


def chosen_loop(settings: Settings) -> str:
    """Returns uvloop or asyncio; raises StartRefused where uvloop is to run and cannot."""
    if settings.event_loop == "asyncio":
        return "asyncio"
    try:
        import_module("uvloop")
    except ImportError as error:
        if settings.event_loop == "auto":
            return "asyncio"
        raise StartRefused(
            f"event_loop: uvloop cannot be imported ({error}): install the extra `fast`"
            " (pip install '.[fast]' in the clone's folder), or set event_loop to auto",
            "event_loop",
        ) from error
    return "uvloop"


def running_loop() -> str:
    """Returns uvloop or asyncio, whichever runs."""
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def run_in_loop(settings: Settings, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Returns what the coroutine of `begin` returns; raises StartRefused as chosen_loop does."""
    make = import_module(chosen_loop(settings)).new_event_loop
    with asyncio.Runner(loop_factory=make) as runner:
        return runner.run(begin())
