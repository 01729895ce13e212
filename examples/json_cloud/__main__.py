"""`python -m examples.json_cloud`: the cloud, and the gateway in front of it."""

import asyncio
import os
import socket
from datetime import datetime
from pathlib import Path
from threading import Event, Thread

import click
from aiohttp import web

from examples.json_cloud.backend import BASE, Cloud
from examples.json_cloud.records import ZONE, made
from gateway.cli.command import said_plainly
from gateway.cli.demo import demo
from gateway.cli.output import fail

HOST, PORT = "127.0.0.1", 8090
CONFIGURATION = Path(__file__).with_name("gateway.yaml")


@click.command(
    help="Serve a made-up cloud of a clinic, and the gateway in front of it. Any further options"
    " are those of `clinic-gateway demo`: --port, --operations-port, --json.",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.option(
    "--cloud-port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Where the cloud listens; 0 is any free port.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="The gateway's folder; .demo/json-cloud in the clone where it is left out.",
)
@click.pass_context
def start(context: click.Context, cloud_port: int, state: Path | None) -> None:
    """Both, until the gateway ends."""
    with said_plainly():
        taken = listening(cloud_port)
        address = f"http://{HOST}:{taken.getsockname()[1]}{BASE}"
        configuration = CONFIGURATION if state is None else configured(state, address)
        os.environ["GATEWAY_BACKEND_URL"] = address
        begun = Event()
        Thread(target=lambda: asyncio.run(serve(taken, begun)), daemon=True).start()
        begun.wait()
        demo(["--config", str(configuration), *context.args])


def listening(port: int) -> socket.socket:
    """The cloud's own address; exit 1, in a sentence, where it can't be had."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        fail(f"the cloud cannot listen on {HOST} port {port}: {why}; choose with --cloud-port")


def configured(state: Path, address: str) -> Path:
    """The gateway.yaml of a folder of its own, made anew: what it says of the cloud is true."""
    lines = {
        "state: ../../.demo/json-cloud": "state: .",
        f"url: http://{HOST}:{PORT}{BASE}": f"url: {address}",
        "mapping: mapping.yaml": f"mapping: {CONFIGURATION.with_name('mapping.yaml')}",
    }
    text = CONFIGURATION.read_text("utf-8")
    for shipped, own in lines.items():
        text = text.replace(shipped, own)
    configuration = state / "gateway.yaml"
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        configuration.write_text(text, "utf-8")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        fail(f"the folder {state} cannot be written: {why}; choose with --state")
    return configuration


async def serve(taken: socket.socket, begun: Event) -> None:
    """The cloud, for good."""
    runner = web.AppRunner(Cloud(made(datetime.now(ZONE).date())).app())
    await runner.setup()
    await web.SockSite(runner, taken).start()
    begun.set()
    await asyncio.Event().wait()


if __name__ == "__main__":
    start()
