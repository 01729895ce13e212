"""`clinic-gateway keys verify`: whether a text can be a secret at all."""

import sys
from pathlib import Path

import click

from gateway.cli.lines import legible_json
from gateway.cli.options import config_option, fail, json_option

LONGEST_LINE = 1024


@click.command()
@config_option
@json_option
def verify(config: Path | None, as_json: bool) -> None:
    """Say of a secret on stdin whether it is well formed, or mistyped.

    Nothing is asked of any store: whether a key has the secret, a call to the gateway tells.
    """
    from gateway.keys.secret import well_formed

    sound = well_formed(_secret_from_stdin())
    if as_json:
        click.echo(legible_json({"wellFormed": sound}))
    elif sound:
        click.echo("well formed: it can be a secret of a gateway")
    if not sound:
        fail("mistyped or cut off: no gateway has made this secret")


def _secret_from_stdin() -> str:
    """The first line on stdin; where a person types, it is not shown."""
    if sys.stdin.isatty():
        return str(click.prompt("Secret", hide_input=True, err=True)).strip()
    line = sys.stdin.buffer.readline(LONGEST_LINE)
    return line.decode("utf-8", "replace").strip()
