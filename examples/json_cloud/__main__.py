"""`python -m examples.json_cloud`: the cloud, and the gateway in front of it."""

import asyncio
import os
import sys
from datetime import datetime
from pathlib import Path
from queue import Queue
from threading import Thread

from aiohttp import web

from examples.json_cloud.backend import BASE, Cloud
from examples.json_cloud.records import ZONE, made
from gateway.cli import main

PORT = 8090
CONFIGURATION = Path(__file__).with_name("gateway.yaml")


async def _serve(ports: "Queue[int]") -> None:
    runner = web.AppRunner(Cloud(made(datetime.now(ZONE).date())).app())
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", PORT).start()
    except OSError:  # another program is there
        await web.TCPSite(runner, "127.0.0.1", 0).start()
    ports.put(runner.addresses[0][1])
    await asyncio.Event().wait()


if __name__ == "__main__":
    ports: Queue[int] = Queue()
    Thread(target=lambda: asyncio.run(_serve(ports)), daemon=True).start()
    os.environ["GATEWAY_BACKEND_URL"] = f"http://127.0.0.1:{ports.get(timeout=10)}{BASE}"
    sys.argv[1:] = ["demo", "--config", str(CONFIGURATION), *sys.argv[1:]]
    sys.exit(main())
