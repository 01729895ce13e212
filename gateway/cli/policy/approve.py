"""`clinic-gateway policy approve`: lets a policy run that shows more than the one before."""

import re
from pathlib import Path
from typing import Any

import click

from gateway.cli.lines import Line
from gateway.cli.options import config_option, fail, json_option

_digits = re.compile("[0-9a-f]{64}").fullmatch


class Digits(click.ParamType[Any]):
    """A hash, whole: who writes policies can make two files whose hashes begin alike."""

    name = "HASH"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        text = str(value).lower()
        if _digits(text) is None:
            self.fail(
                "write all 64 digits of the waiting policy's hash: others may begin like it",
                param,
                ctx,
            )
        return text


class Said(Line):
    """A text of one line that is not blank."""

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        text = super().convert(value, param, ctx).strip()
        if not text:
            self.fail("it must not be blank", param, ctx)
        return text


@click.command()
@click.argument("digest", metavar="HASH", type=Digits())
@click.option("--by", required=True, type=Said(), metavar="NAME", help="Who approves it.")
@click.option("--reason", required=True, type=Said(), help="Why it may show more.")
@config_option
@json_option
def approve(digest: str, by: str, reason: str, config: Path | None, as_json: bool) -> None:
    """Let the policy run that a gateway holds back, as it shows more than the one that runs.

    HASH is the waiting policy's, whole, as `policy status` prints it; its cases must pass first.
    The approval is kept with its name, reason and time, and counts once: when another policy has
    run meanwhile, this one waits again.
    """
    from gateway.cli.policy.processes import now, tell, with_versions
    from gateway.inquiries.waiting import Asked, looked, waiting
    from gateway.policy.running.versions import APPROVED, Event, Versions

    async def approved(versions: Versions) -> Asked | str:
        running = await versions.running(now())
        held = waiting(running)
        if digest not in held:
            return _why_not(digest, held, [each.state.get("waiting") for each in running])
        event = Event(at=now(), event=APPROVED, hash=digest, who=by, reason=reason)
        return await looked(versions, now, event)

    asked = with_versions(config, approved)
    if isinstance(asked, str):
        fail(asked)
    tell(asked.running, as_json=as_json, revision=asked.revision)


def _why_not(digest: str, waiting: list[str], held: list[str | None]) -> str:
    """`held` are the policies that wait, whatever for."""
    if digest in held:
        return (
            f"the policy {digest} waits for its cases to pass, and can be approved then:"
            " clinic-gateway policy test names those that fail"
        )
    if not waiting:
        return "no policy waits for an approval: there is nothing to approve"
    return f"the policy {digest} does not wait: {', '.join(waiting)} does"
