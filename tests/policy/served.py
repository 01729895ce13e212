"""A gateway that follows a policy file: what operators write, and what they ask of it."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from tests.command import clinic_gateway
from tests.conftest import RunningGateway
from tests.readiness import forget_answers


def write(file: Path, text: str) -> None:
    file.write_text(text)


async def ready(session: aiohttp.ClientSession, gateway: RunningGateway) -> Any:
    """The policy's part of readiness, asked anew until all parts are ready.

    On a busy machine a store may be slow for a moment, and is told to be.
    """
    for _ in range(20):
        forget_answers(gateway.gateway)
        async with session.get(gateway.operations + "/readyz") as response:
            told = await response.json()
            if response.status == 200:
                return told["parts"]["policy"]
        await asyncio.sleep(0.2)
    raise AssertionError(told)


async def figures(session: aiohttp.ClientSession, gateway: RunningGateway) -> list[str]:
    async with session.get(gateway.operations + "/metrics") as response:
        return (await response.text()).splitlines()


async def command(gateway: RunningGateway, *words: str) -> tuple[int, str, str]:
    """A policy command on the gateway's own store, while it runs."""
    config = str(gateway.folder / "gateway.yaml")
    done = await asyncio.to_thread(clinic_gateway, "policy", *words, "--config", config)
    return done.returncode, done.stdout, done.stderr
