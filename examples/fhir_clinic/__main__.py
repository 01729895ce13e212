"""`python -m examples.fhir_clinic`: the FHIR server, filled, and the gateway in front of it."""

import os
from datetime import datetime
from pathlib import Path

import click

from examples.fhir_clinic.records import ZONE, connected, made
from examples.fhir_clinic.server import CannotStart, serving
from gateway.cli.command import said_plainly
from gateway.cli.demo import demo
from gateway.cli.output import fail

PORT = 8091
CONFIGURATION = Path(__file__).with_name("gateway.yaml")


@click.command(
    help="Serve a clinic on a FHIR server, and the gateway in front of it. Any further options are"
    " those of `clinic-gateway demo`: --port, --operations-port, --json.",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.option(
    "--fhir-port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Where the FHIR server listens; 0 is any free port.",
)
@click.pass_context
def start(context: click.Context, fhir_port: int) -> None:
    """Both, until the gateway ends."""
    with said_plainly():
        try:
            with serving(fhir_port) as address:
                connected(address).fill(made(datetime.now(ZONE).date()))
                os.environ["GATEWAY_BACKEND_URL"] = address
                demo(["--config", str(CONFIGURATION), *context.args])
        except CannotStart as error:
            fail(str(error))


if __name__ == "__main__":
    start()
