"""What decides which policy runs, in the one process of a machine that does."""

from functools import partial
from pathlib import Path

from gateway.assembly.kit import Kit
from gateway.assembly.practice import Practice
from gateway.observe.troubles import PolicyNews
from gateway.policy.running.file import Snapshot
from gateway.policy.running.follower import Follower, hand_over, take
from gateway.policy.running.keeper import Keeper
from gateway.policy.running.versions import RAN, Presence, Versions
from gateway.store import StoreError


async def decider(
    kit: Kit, versions: Versions, practice: Practice, found: Snapshot, handed: Path | None = None
) -> tuple[Keeper, Follower]:
    """What keeps the running policy, and what follows its file.

    `handed` is where other processes find what runs. Where something lies there already and the
    practice was opened without the file's policy, that goes on, whatever the file says.
    """
    news = PolicyNews(kit.metrics, kit.events)
    kit.metrics.put("gateway_policy_behind", 0)
    kit.metrics.put("gateway_policy_cases_failing", 0)

    async def approved(digest: str) -> bool:
        if any(each.event == RAN and each.hash != digest for each in keeper.unwritten):
            raise StoreError("the store does not know yet of another policy that ran")
        return await versions.approved(digest)

    approve = kit.settings.policy_widening == "approve"
    keeper = Keeper(practice.examiner, news, kit.now, approve=approve, approved=approved)
    before = None if handed is None else take(handed)
    if practice.examined is not None:
        await keeper.begin(found, practice.examined, await versions.last())
    elif before is not None:
        await keeper.go_on(before.version, before.loaded_at)
    role = "" if handed is None else "operations"
    presence = Presence(versions, kit.now, role, sweeps=handed is not None)
    hand_on = None if handed is None else partial(hand_over, handed)
    follower = Follower(keeper, kit.settings.policy, versions, presence, news, hand_on)
    return keeper, kit.closing(follower)
