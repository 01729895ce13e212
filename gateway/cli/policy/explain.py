"""`clinic-gateway policy explain`: why a key sees what it sees, now or in a past answer."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click

from gateway.audit.chains import audit_folder
from gateway.audit.entries import BEGUN
from gateway.audit.search import EntryFilter, newest_entries
from gateway.cli.audit import reading
from gateway.cli.command import Command, Run, option
from gateway.cli.keys import NO_KEYS, key_named
from gateway.cli.output import counted, fail
from gateway.cli.values import ONE_LINE, TextValue, one_of
from gateway.contract.access import AccessLevel
from gateway.contract.operations import OPERATIONS, Operation
from gateway.inquiries.policies import RUNNING, policy_named
from gateway.keys.key import Key
from gateway.keys.store import KeyStore, OddKey, UnknownKey
from gateway.policy.policy import Policy
from gateway.policy.reading.document import spots_of
from gateway.policy.telling.wording import Reason, reasons
from gateway.settings import StartRefused
from gateway.state import opened_if_begun

_BY_ID = {operation.id: operation for operation in OPERATIONS}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one key sees of one operation's answers.

    `refused` says why it gets no answer at all; `decided` what gave it its level. `past` are the
    audit's entries of the answer that is explained, where one is: others had the same request id
    before it.
    """

    operation: Operation
    key: Key | None
    level: AccessLevel
    decided: str
    policy: Policy
    refused: str = ""
    past: Sequence[Any] = ()


@click.command(cls=Command)
@option("--key key_id", TextValue("ID", str), "A key, by its id or its name.")
@option(
    "--operation",
    one_of("OPERATION", _BY_ID, _BY_ID.__getitem__),
    "What it calls, such as get_client.",
)
@option("--request", ONE_LINE, "An answer that went out: its X-Request-Id.", metavar="ID")
@option(
    "--policy",
    click.STRING,
    "A file, or the beginning of the hash of a policy that ran.",
    default=RUNNING,
)
async def explain(
    run: Run, key_id: str | None, operation: Operation | None, request: str | None, policy: str
) -> None:
    """Say field by field what a key sees, and which line of the policy decides.

    Name a key and an operation; or an answer that went out, by its request id: then the policy of
    that time is taken.
    """
    if request and not (key_id or operation):
        found = await _of_answer(run, request)
    elif key_id and operation and not request:
        found = await _of_key(run, key_id, operation, policy)
    else:
        raise click.UsageError("name --key and --operation, or --request")
    resource = found.operation.returns
    if resource.governed:
        spots = spots_of(found.policy.version.content)
        why = list(reasons(resource, found.policy.rules[resource.name], found.level, spots))
    else:
        text = "no policy is about it"
        why = [Reason(path=path, sight="whole", why=text, spot=None) for path in resource.paths]
    run.say(_data(found, why), _lines(found, why), indent=2)


async def _of_key(run: Run, key_id: str, operation: Operation, policy: str) -> Explanation:
    async with run.store(NO_KEYS) as store:
        key, _ = await key_named(KeyStore(store), key_id)
        try:
            named = await policy_named(policy, store)
        except StartRefused:
            if policy != RUNNING:
                raise
            # none has run yet
            named = await policy_named(str(run.settings.policy), store)
    name, level = operation.returns.name, key.level_for(operation.returns.name)
    decided = f"the key's level; it has no scope for {name}"
    if not operation.returns.governed:
        decided = f"{name} are always whole"
    elif name in key.scopes:
        decided = f"the key's scope {name}={level}"
    is_open = operation.permission in key.permissions
    lacks = "" if is_open else f"the key lacks {operation.permission}: every call is 403"
    return Explanation(operation, key, level, decided, named, refused=lacks)


async def _of_answer(run: Run, request: str) -> Explanation:
    """By the newest entry of the request: a partner may use an id again.

    That a booking began is no answer, unless nothing else is known of it.
    """
    folder = audit_folder(run.settings)
    with reading(run.settings):
        found = newest_entries(folder, EntryFilter(request=request))[::-1]
    ended = [entry for entry in found if entry["outcome"] != BEGUN] or found
    if not ended:
        fail(f"the audit in {folder} knows no answer with the request id {request}")
    entry = ended[-1]
    operation = _BY_ID.get(entry["operation"])
    if operation is None or entry["level"] is None or entry["policy"] is None:
        fail(f"that call got no further than {entry['reason'] or 'the documents'}: nothing shown")
    key = None
    async with opened_if_begun(run.settings) as store:
        named = await policy_named(entry["policy"], store)
        with suppress(UnknownKey, OddKey):
            key = await KeyStore(store).get(entry["keyId"]) if store else None
    decided = "the level that was applied, as the audit has it"
    return Explanation(operation, key, AccessLevel(entry["level"]), decided, named, past=ended)


def _lines(found: Explanation, why: Sequence[Reason]) -> Iterator[str]:
    whose = f"{found.key.name} ({found.key.id})" if found.key else "a key that is gone"
    yield f"{found.operation.id} for {whose}"
    if found.past:
        *others, entry = found.past
        records = counted(len(entry["recordIds"]), "record")
        yield f"answer of {entry['time'][:19]}Z: {entry['outcome']}, {records}"
        if others:
            yield f"the newest of {len(found.past)} with that request id; before:"
        for other in others:
            operation = other["operation"] or "no operation"
            yield f"  {other['time'][:19]}Z {operation}: {other['outcome']}"
    yield f"level {found.level}: {found.decided}"
    short, name = found.policy.short_hash, found.policy.file
    yield f"policy {short}, as it ran" if name == short else f"policy {name}, hash {short}"
    if found.refused:
        yield found.refused
    width = max((len(reason.path) for reason in why), default=0)
    for reason in why:
        place = (
            f" ({found.policy.version.file}:{reason.spot[0]}:{reason.spot[1]})"
            if reason.spot
            else ""
        )
        if reason.path:
            yield f"  {reason.path:{width}}  {reason.sight:8}  {reason.why}{place}"
        elif reason.sight != "all":
            yield f"records: {reason.sight}: {reason.why}{place}"


def _data(found: Explanation, why: Sequence[Reason]) -> dict[str, Any]:
    policy = found.policy
    return {
        "operation": found.operation.id,
        "key": {"id": found.key.id, "name": found.key.name} if found.key else None,
        "level": found.level,
        "decided": found.decided,
        "refused": found.refused or None,
        "policy": {"name": policy.file, "hash": policy.hash, "place": policy.version.file},
        "answer": found.past[-1] if found.past else None,
        "others": list(found.past[:-1]),
        "fields": [
            {
                "field": reason.path or None,
                "sight": reason.sight,
                "why": reason.why,
                "line": reason.spot and reason.spot[0],
                "column": reason.spot and reason.spot[1],
            }
            for reason in why
        ],
    }
