"""`clinic-gateway policy decline`: what waits is not to run, and everybody is told so."""

from pathlib import Path

import click

from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option
from gateway.cli.policy.decision import decided, decision_options


@click.command()
@decision_options("Why it may not show more.")
@config_option
@json_option
def decline(digest: str, by: str | None, reason: str, config: Path | None, as_json: bool) -> None:
    """Decline the policy that a gateway holds back.

    The one that runs goes on. HASH is the waiting policy's, whole, as `policy status` prints it.
    `policy status` and the panel show who declined it and why, until the file changes or somebody
    approves it after all.
    """
    from gateway.policy.running.versions import DECLINED

    _, who = decided(config, DECLINED, digest, by, reason)
    if as_json:
        click.echo(legible_json({"declined": digest, "by": who, "reason": reason}))
    else:
        click.echo(legible(f"{digest} is declined by {who}; the policy that runs goes on"))
