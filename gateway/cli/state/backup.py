"""`clinic-gateway state backup`: a whole backup, beside a gateway that may run."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import click

from gateway.cli.options import config_option, fail, json_option
from gateway.cli.state.told import audit_line, audit_told, end_if_wrong, manifest_lines, say, why
from gateway.cli.state.told import manifest_told as told
from gateway.settings import check_own_place, configuration_file, load_settings
from gateway.state.backup import back_up, verify_backup


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@config_option
@json_option
def backup(folder: Path, config: Path | None, as_json: bool) -> None:
    """Back up the state into DIR, a new folder, and verify the backup.

    It holds the store, the audit, both secrets and the configuration: keep it as safe as these.
    Exits with 1 where it cannot be made, or where its audit is not as it was written.
    """
    check_own_place(config)
    settings, now = load_settings(config), datetime.now(UTC)
    try:
        manifest = asyncio.run(back_up(settings, configuration_file(config), folder, now))
    except OSError as error:
        place = error.filename or folder
        fail(f"the backup in {folder} cannot be made: {why(error)} ({place}); remove it")
    verified = verify_backup(folder, manifest)
    data = {"folder": str(folder), **told(manifest), "audit": audit_told(verified)}
    lines = [*manifest_lines(folder, manifest), audit_line(verified)]
    say(data, iter(lines), as_json=as_json)
    end_if_wrong(verified)
