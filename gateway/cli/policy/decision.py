"""What somebody decides on the shell of a policy that waits: who, why, and a deed in the audit."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from gateway.cli.options import CommandT, OneLine, fail
from gateway.inquiries.policies import Reload

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


class Said(OneLine):
    """A text of one line that is not blank."""

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        text = super().convert(value, param, ctx).strip()
        if not text:
            self.fail("it must not be blank", param, ctx)
        return text


def decision_options(reason: str) -> Callable[[CommandT], CommandT]:
    """`HASH`, `--by` and `--reason`; `reason` is the help of the last."""
    options = (
        click.option("--reason", required=True, type=Said(), help=reason),
        click.option(
            "--by",
            type=Said(),
            metavar="NAME",
            help="Who asked for it: a remark beside the reason. The audit and the history name the"
            " system account that runs this.",
        ),
        click.argument("digest", metavar="HASH", type=Digits()),
    )

    def with_options(command: CommandT) -> CommandT:
        for option in options:
            command = option(command)
        return command

    return with_options


def decided(
    config: Path | None, decision: str, digest: str, by: str | None, reason: str
) -> tuple[Reload, str]:
    """The running gateways once they have looked, and who decided; APPROVED or DECLINED.

    The end of the command where that policy does not wait.
    """
    from gateway.cli.deeds import actor, recording, with_store
    from gateway.cli.policy.processes import NOBODY, now
    from gateway.inquiries.policies import looked, waiting
    from gateway.policy.running.versions import Event, Versions
    from gateway.settings import load_settings

    why = reason if by is None else f"{reason} (asked by {by})"
    remark = {} if by is None else {"by": by}

    async def done(store: Any) -> Reload:
        versions = Versions(store)
        running = await versions.running(now())
        decidable = waiting(running)
        if digest not in decidable:
            held = [each.state.get("waiting") for each in running]
            fail(_why_not(digest, decidable, held))
        async with (
            recording(load_settings(config), store) as deed,
            deed(f"policy {decision}", digest, reason=reason, **remark),
        ):
            event = Event(at=now(), event=decision, hash=digest, who=actor(), reason=why)
            return await looked(versions, now, event)

    return with_store(config, done, where_none=NOBODY), actor()


def _why_not(digest: str, decidable: Sequence[str], held: Sequence[str | None]) -> str:
    """`decidable` are the policies that wait for a decision, `held` those that wait at all."""
    if digest in held:
        return (
            f"the policy {digest} waits for its cases to pass, and can be decided on then:"
            " clinic-gateway policy test names those that fail"
        )
    if not decidable:
        return "no policy waits for an approval: there is nothing to decide"
    return f"the policy {digest} does not wait: {', '.join(decidable)} does"
