"""`clinic-gateway policy reload`: has the running gateways look at their file now."""

from pathlib import Path

import click

from gateway.cli.options import config_option, json_option


@click.command()
@config_option
@json_option
def reload(config: Path | None, as_json: bool) -> None:
    """Have the running gateways look at their policy file, and say what came of it.

    They see a changed file by themselves; this waits until they have, and has one that was refused,
    or whose cases fail, tried again. Exit 1 where one refused it or holds it back, or none is
    running.
    """
    from gateway.cli.policy.processes import now, tell, with_versions
    from gateway.inquiries.policies import looked

    asked = with_versions(config, lambda versions: looked(versions, now))
    tell(asked.running, as_json=as_json, revision=asked.revision)
