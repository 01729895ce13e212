"""`clinic-gateway policy approve`: lets a policy run that shows more than the one before."""

from pathlib import Path

import click

from gateway.cli.options import config_option, json_option
from gateway.cli.policy.decision import decided, decision_options


@click.command()
@decision_options("Why it may show more.")
@config_option
@json_option
def approve(digest: str, by: str | None, reason: str, config: Path | None, as_json: bool) -> None:
    """Let the policy run that a gateway holds back, as it shows more than the one that runs.

    HASH is the waiting policy's, whole, as `policy status` prints it; its cases must pass first.
    The approval is kept with the system account that gave it, its reason and its time, and counts
    once: when another policy has run meanwhile, this one waits again.
    """
    from gateway.cli.policy.processes import tell
    from gateway.policy.running.versions import APPROVED

    asked, _ = decided(config, APPROVED, digest, by, reason)
    tell(asked.running, as_json=as_json, revision=asked.revision)
