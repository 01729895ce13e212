"""What `policy check` says of a policy whose cases fail: what a gateway would do with it."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from adapters.documents.problems import DocumentErrors
from gateway.cli.policy.processes import now
from gateway.inquiries.policies import RUNNING, Named, outlook, policy_named, waiting
from gateway.policy.policy import Policy
from gateway.policy.running.versions import Versions
from gateway.policy.telling.diff import Change
from gateway.settings import Settings, StartRefused, load_settings
from gateway.state import opened_if_begun
from gateway.store import StoreError

_ANYWHERE = (
    "What it shows less than the policy that runs takes effect at once; what it shows more waits"
    " until its cases pass.",
    "A gateway on which no policy has run so far does not start with it.",
)


def outlook_lines(policy: Policy, config: Path | None) -> Sequence[str]:
    """What would come of it on the configured gateway; on any, where that one has run nothing."""
    try:
        settings = load_settings(config)
        last = asyncio.run(_last(settings))
    except (DocumentErrors, StartRefused, StoreError):
        return _ANYWHERE
    if last.hash == policy.hash:
        return ["It is the policy that runs: mend its cases, so that a later change need not wait."]
    return list(_compared(policy, last, settings))


def waits_for_approval(policy: Policy, config: Path | None) -> bool:
    """Whether a gateway that runs on the configured store holds it back until somebody approves."""
    try:
        return policy.hash in asyncio.run(_waiting(load_settings(config)))
    except (DocumentErrors, StartRefused, StoreError):
        return False


async def _waiting(settings: Settings) -> Sequence[str]:
    async with opened_if_begun(settings) as store:
        return waiting(await Versions(store).running(now())) if store else ()


async def _last(settings: Settings) -> Named:
    async with opened_if_begun(settings) as store:
        return await policy_named(RUNNING, store)


def _compared(policy: Policy, last: Named, settings: Settings) -> Iterator[str]:
    found = outlook(last.rules, policy.rules)
    yield f"Compared with the policy that ran last ({last.hash[:12]}), takes effect at once:"
    yield from _listed(found.at_once)
    approved = " and somebody approves it" if settings.policy_widening == "approve" else ""
    yield f"Waits until its cases pass{approved}:"
    yield from _listed(found.waits)


def _listed(changes: Sequence[Change]) -> Iterator[str]:
    yield from (f"  {each.sentence}" for each in changes)
    if not changes:
        yield "  nothing"
