"""`clinic-gateway policy status`: which policy runs, whether it is the file's, and if not why."""

from collections.abc import Mapping, Sequence
from os.path import realpath
from pathlib import Path
from socket import gethostname

import click

from gateway.cli.options import config_option, json_option
from gateway.policy.running.versions import Event, Process, Versions
from gateway.settings import load_settings


@click.command()
@config_option
@json_option
def status(config: Path | None, as_json: bool) -> None:
    """Print which policy each running gateway has, and what is the matter with its file.

    Exit 0 where each runs its file; 1 where one refused it or holds it back, or none is running.
    Cases that fail are named either way.
    """
    from gateway.cli.policy.processes import now, tell, with_versions
    from gateway.inquiries.policies import declined, waiting

    async def told(versions: Versions) -> tuple[Sequence[Process], Mapping[str, Event]]:
        running = await versions.running(now())
        return running, await declined(versions, waiting(running))

    found, noes = with_versions(config, told)
    _warn(found, load_settings(config).policy)
    tell(found, as_json=as_json, declined=noes)


def _warn(running: Sequence[Process], named: Path) -> None:
    """Of gateways on this machine that began with another file than the configuration names."""
    for each in running:
        follows = Path(each.state["file"])
        if each.host == gethostname() and realpath(follows) != realpath(named):
            text = (
                f"process {each.pid} follows {follows}, and the configuration names {named} by now"
            )
            click.echo(f"{text}: start the gateway anew", err=True)
