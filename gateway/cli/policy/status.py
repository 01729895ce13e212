"""`clinic-gateway policy status`: which policy runs, whether it is the file's, and if not why."""

from datetime import UTC, datetime
from pathlib import Path

import click

from gateway.cli.options import config_option, json_option


@click.command()
@config_option
@json_option
def status(config: Path | None, as_json: bool) -> None:
    """Print which policy each running gateway has, and what is the matter with its file.

    Exit 0 where each runs its file; 1 where one refused it or holds it back, or none is running.
    """
    from gateway.cli.policy.processes import tell, with_versions

    found = with_versions(config, lambda versions: versions.running(datetime.now(UTC)))
    tell(found, as_json=as_json)
