"""`python -m examples.json_cloud`: the cloud, and the gateway in front of it."""

import asyncio
import sys
from datetime import datetime
from pathlib import Path
from threading import Event, Thread

from aiohttp import web

from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import ZONE, made
from gateway.cli import main

PORT = 8090
CONFIGURATION = Path(__file__).with_name("gateway.yaml")


async def _serve(listening: Event) -> None:
    runner = web.AppRunner(Cloud(made(datetime.now(ZONE).date())).app())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", PORT).start()
    listening.set()
    await asyncio.Event().wait()


if __name__ == "__main__":
    listening = Event()
    cloud = Thread(target=lambda: asyncio.run(_serve(listening)), daemon=True)
    cloud.start()
    if not listening.wait(10):
        sys.exit(f"the cloud cannot listen on 127.0.0.1:{PORT}: is another program there?")
    sys.argv[1:] = ["demo", "--config", str(CONFIGURATION), *sys.argv[1:]]
    sys.exit(main())
