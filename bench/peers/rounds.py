"""The rounds: each target once in each, and what it took."""

import asyncio
import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from random import Random

import aiohttp

from bench.peers.farm import Address
from bench.peers.installed import HERE
from bench.peers.samples import Round, Sample, percentile
from bench.peers.scenarios import Scenario
from bench.peers.targets import Target
from bench.processes import cpu_of_all

WARM_UP = 1  # seconds before each sample that are not measured
PATIENCE = aiohttp.ClientTimeout(5)


def one_round(scenario: Scenario, targets: Sequence[Target], seconds: int, folder: Path) -> Round:
    """Returns what each target that takes part did, one after the other."""
    return {
        each.name: _sample(scenario, each, seconds, folder)
        for each in targets
        if scenario.variant in each.addresses and each.name != scenario.without
    }


def _sample(scenario: Scenario, target: Target, seconds: int, folder: Path) -> Sample:
    address, secret = target.addresses[scenario.variant], target.keys.key
    load = _open_loop if scenario.rate else _wrk
    load(scenario, address, secret, WARM_UP, folder)
    before = cpu_of_all(address.pid)
    found = load(scenario, address, secret, seconds, folder)
    spent = cpu_of_all(address.pid) - before
    return replace(found, cpu=spent / max(found.requests, 1) * 1e6)


def _wrk(scenario: Scenario, address: Address, secret: str, seconds: int, folder: Path) -> Sample:
    paths = folder / "paths"
    paths.write_text("".join(f"{address.prefix}{each}\n" for each in scenario.paths))
    words = f"wrk -t1 -c{scenario.connections} -d{seconds}s --timeout 5s -s {HERE}/wrk.lua".split()
    words += [f"http://127.0.0.1:{address.port}", "--", str(paths), secret]
    done = subprocess.run(words, capture_output=True, check=True, text=True, timeout=seconds + 30)
    return Sample(**json.loads(done.stdout.rpartition("summary ")[2]))


def _open_loop(
    scenario: Scenario, address: Address, secret: str, seconds: int, folder: Path
) -> Sample:
    asked = scenario.rate * seconds
    paths = islice(cycle(scenario.paths), asked)
    urls = [f"http://127.0.0.1:{address.port}{address.prefix}{each}" for each in paths]
    times = asyncio.run(_times(urls, scenario.rate, secret))
    return Sample(
        requests=asked,
        seconds=seconds,
        bad=asked - len(times),
        p50=percentile(times, 0.5) * 1e3,
        p99=percentile(times, 0.99) * 1e3,
    )


async def _times(urls: Sequence[str], rate: int, secret: str) -> list[float]:
    """Seconds to each 200; asks at that rate, a little early or late, and waits for no answer."""
    jitter = Random(7)  # noqa: S311 - no secret
    began, asked = time.perf_counter(), []
    headers = {"X-API-Key": secret}
    async with aiohttp.ClientSession(headers=headers, timeout=PATIENCE) as session:
        for number, url in enumerate(urls):
            due = began + (number + 0.5 + jitter.uniform(-0.4, 0.4)) / rate
            await asyncio.sleep(due - time.perf_counter())
            asked.append(asyncio.create_task(_seconds(session, url)))
        found = await asyncio.gather(*asked)
    return [each for each in found if each is not None]


async def _seconds(session: aiohttp.ClientSession, url: str) -> float | None:
    began = time.perf_counter()
    try:
        async with session.get(url) as answer:
            await answer.read()
    except (aiohttp.ClientError, TimeoutError):
        return None
    return time.perf_counter() - began if answer.status == 200 else None
