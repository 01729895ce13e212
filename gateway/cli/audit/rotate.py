"""`clinic-gateway audit rotate-key`: from now on another key seals the lines."""

from pathlib import Path

import click

from gateway.audit.secrets import key_file, rotate
from gateway.cli.audit.opened import place_of_audit
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option


@click.command("rotate-key")
@config_option
@json_option
def rotate_key(config: Path | None, as_json: bool) -> None:
    """Make a new HMAC key for the audit; the former ones stay, so that older lines verify.

    Running processes take it with the next line that they write.
    """
    path = key_file(place_of_audit(config))
    new = rotate(path)
    if as_json:
        click.echo(legible_json({"key": new.id, "file": str(path)}))
    else:
        click.echo(legible(f"the key {new.id} seals from now on; keep a copy of {path}"))
