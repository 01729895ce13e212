"""The practice system, opened; and whether the policy's file is one that it can serve."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from adapters.base import Adapter, AdapterError
from adapters.documents.problems import DocumentErrors, Problem
from gateway.assembly.kit import Kit
from gateway.backend import (
    BackendProbe,
    booking_window,
    check_serves,
    open_backend,
    unserved_rows,
)
from gateway.booking.times import FreeTimes
from gateway.contract.window import BookingWindow
from gateway.policy.cases.run import verify
from gateway.policy.policy import Policy
from gateway.policy.running.file import Examined, Examiner, Snapshot
from gateway.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """The practice system, what examines policies for it, and the file's, if it was looked at.

    `window` is when partners may book in it.
    """

    adapter: Adapter
    window: BookingWindow
    probe: BackendProbe
    secret: bytes
    examiner: Examiner
    examined: Examined | None


async def open_practice(
    kit: Kit, store: Store, found: Snapshot | None = None, *, looks: bool = False
) -> Practice:
    """The practice system and the policy, or what is wrong with either.

    Without a file of the policy neither is looked at more closely, as that was done before; unless
    it `looks`, since the mapping may be a new one.
    """
    examiner = Examiner(path=kit.settings.policy, report=kit.report, verify=verify)
    problems: list[Problem] = []
    policy: Policy | None = None
    try:
        policy = None if found is None else examiner.policy(found)
    except DocumentErrors as error:
        problems += error.problems
    try:
        adapter, secret = await open_backend(kit.settings, store, kit.report, kit.backend)
    except DocumentErrors as error:
        raise DocumentErrors([*problems, *error.problems]) from error
    window = booking_window(kit.settings)
    adapter = FreeTimes(adapter, store, window)
    probe = BackendProbe(kit.closing(adapter), warn=kit.backend.mapping_warning)
    problems += await _lacking(kit.closing(probe)) if looks or found is not None else ()
    examiner = replace(examiner, narrows=partial(unserved_rows, adapter))
    examined: Examined | None = None
    if policy is not None:
        problems += examiner.narrows(policy)
        examined = Examined(policy, await asyncio.to_thread(examiner.failing, policy))
    if problems:
        raise DocumentErrors([*problems, *(examined.failing if examined else ())])
    check_serves(adapter, kit.settings)
    return Practice(
        adapter=adapter,
        window=window,
        probe=probe,
        secret=secret,
        examiner=examiner,
        examined=examined,
    )


def check_rows(practice: Practice, policy: Policy) -> None:
    """DocumentErrors where the practice system cannot leave out what the policy's conditions do."""
    problems = practice.examiner.narrows(policy)
    if problems:
        raise DocumentErrors(problems)


async def _lacking(probe: BackendProbe) -> Sequence[Problem]:
    """What the practice system lacks; nothing where it cannot be asked, as it may come back."""
    try:
        await probe.at_first()
    except DocumentErrors as error:
        return error.problems
    except AdapterError:
        return ()
    return ()
