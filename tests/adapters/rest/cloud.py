"""The example's cloud, listening, and an adapter in front of it."""

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

from aiohttp import web

from adapters.base import AdapterOptions, Trouble
from adapters.rest.adapter import RestAdapter
from examples import json_cloud
from examples.json_cloud.backend import PASSWORD, USER, Cloud
from examples.json_cloud.records import made
from gateway.backend import shapes
from tests.adapters.clinic import SECRET, TODAY

FOLDER = Path(json_cloud.__file__).parent
MAPPING = FOLDER / "mapping.yaml"
CREDENTIALS = {"user": USER, "password": PASSWORD}
# What `connect` made, so that a test that fails leaves no connection for another to trip over.
CONNECTED: WeakSet[RestAdapter] = WeakSet()


def new_cloud(**more: Any) -> Cloud:
    return Cloud(made(TODAY), **more)


class Served(Protocol):
    """What makes the program that answers."""

    def app(self) -> web.Application: ...


@contextlib.asynccontextmanager
async def listening(cloud: Served) -> AsyncIterator[str]:
    """The address of the cloud's interface."""
    runner = web.AppRunner(cloud.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}/v2"
    finally:
        await runner.cleanup()


def connect(
    url: str,
    folder: Path,
    change: Callable[[str], str] = lambda text: text,
    troubles: list[Trouble] | None = None,
    **more: Any,
) -> RestAdapter:
    """The example's mapping, changed, over that address."""
    mapping = folder / "mapping.yaml"
    mapping.write_text(change(MAPPING.read_text()))
    kept = [] if troubles is None else troubles
    opened = RestAdapter(
        AdapterOptions(
            url=url,
            mapping=mapping,
            secret=SECRET,
            shapes=shapes(),
            report=kept.append,
            credentials=CREDENTIALS,
            **more,
        )
    )
    CONNECTED.add(opened)
    return opened


def replaced(*pairs: tuple[str, str]) -> Callable[[str], str]:
    """A change of the mapping: each text, which stands there, by another."""

    def change(text: str) -> str:
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        return text

    return change
