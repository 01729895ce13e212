"""A backend to ask, as the adapter makes it of a mapping's `backend` part."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from zoneinfo import ZoneInfo

from adapters.mapping.converters import Converters
from adapters.mapping.models import BackendMap
from adapters.rest.backend import Backend
from adapters.rest.client import Client, Request
from adapters.rest.requests import Templates

ASK = Request(label="GET /things", method="GET", target="/things")
WRITE = Request(label="POST /things", method="POST", target="/things", body=b"{}")
SECRETS = {"user": "gateway", "password": "correct horse", "token": "t0ken"}


@contextlib.asynccontextmanager
async def asking(
    url: str, *, patience: float = 30.0, in_flight: int = 20, **backend: Any
) -> AsyncIterator[Backend]:
    templates = Templates(Converters(ZoneInfo("Europe/Paris"), bytes(32)), SECRETS)
    client = Client(url, timeout=patience, in_flight=in_flight)
    made = Backend(BackendMap.model_validate(backend), templates, client)
    try:
        yield made
    finally:
        await made.aclose()
