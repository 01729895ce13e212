"""`clinic-gateway policy explain`: why a key sees what it sees, now or in a past answer."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gateway.audit.chains import audit_folder
from gateway.audit.entries import BEGUN
from gateway.audit.search import EntryFilter, newest_entries
from gateway.cli.audit.access import reading
from gateway.cli.keys import one_named
from gateway.cli.lines import legible
from gateway.cli.options import OneLine, OneOf, config_option, fail, json_option
from gateway.contract.access import AccessLevel
from gateway.contract.operations import OPERATIONS, Operation
from gateway.inquiries.policies import RUNNING, Named, deciding_lines, policy_named
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.keys.told import OddKey, UnknownKey
from gateway.policy.telling.wording import Reason, reasons
from gateway.settings import Settings, StartRefused, load_settings
from gateway.state import opened_if_begun
from gateway.store import Store

_BY_ID = {operation.id: operation for operation in OPERATIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What one key sees of one operation's answers.

    `refused` says why it gets no answer at all; `decided` what gave it its level. `past` is what
    the audit knows of the answer, where one is explained; `others` had the same request id before.
    """

    operation: Operation
    key: Key | None
    level: AccessLevel
    decided: str
    policy: Named
    refused: str = ""
    past: Any = None
    others: Sequence[Any] = ()

    def reasons(self) -> Sequence[Reason]:
        """Why, field by field."""
        resource = self.operation.returns
        if not resource.governed:
            why = "no policy is about it"
            return [Reason(path=path, sight="whole", why=why, spot=None) for path in resource.paths]
        spots = deciding_lines(self.policy.content)
        return list(reasons(resource, self.policy.rules[resource.name], self.level, spots))


@click.command()
@click.option("--key", "key_id", metavar="ID", help="A key, by its id or its name.")
@click.option(
    "--operation", type=OneOf("OPERATION", _BY_ID), help="What it calls, such as get_client."
)
@click.option(
    "--request", type=OneLine(), metavar="ID", help="An answer that went out: its X-Request-Id."
)
@click.option(
    "--policy",
    default=RUNNING,
    show_default=True,
    help="A file, or the beginning of the hash of a policy that ran.",
)
@config_option
@json_option
def explain(
    key_id: str | None,
    operation: str | None,
    request: str | None,
    policy: str,
    config: Path | None,
    as_json: bool,
) -> None:
    """Say field by field what a key sees, and which line of the policy decides.

    Name a key and an operation; or an answer that went out, by its request id: then the policy of
    that time is taken.
    """
    if bool(request) == bool(key_id and operation) or bool(key_id) != bool(operation):
        raise click.UsageError("name --key and --operation, or --request")
    settings = load_settings(config)
    if request:
        found = asyncio.run(_of_answer(settings, *_past(settings, request)))
    else:
        found = asyncio.run(_of_key(settings, key_id or "", _BY_ID[operation or ""], policy))
    if as_json:
        click.echo(json.dumps(_members(found), indent=2))
    else:
        for line in _lines(found):
            click.echo(legible(line))


async def _of_key(
    settings: Settings, key_id: str, operation: Operation, policy: str
) -> Explanation:
    async with opened_if_begun(settings) as store:
        if store is None:
            fail("no keys are known here: name the gateway's configuration with --config")
        key = one_named([key for key, _ in (await KeyStore(store).list()).keys], key_id)
        named = await _policy(policy, store, settings)
    may_ask = operation.permission in key.permissions
    return Explanation(
        operation=operation,
        key=key,
        level=key.level_for(operation.returns.name),
        decided=_decided(key, operation),
        policy=named,
        refused="" if may_ask else f"the key lacks {operation.permission}: every call is 403",
    )


async def _policy(name: str, store: Store, settings: Settings) -> Named:
    """The running policy; the configured file where none has run yet."""
    try:
        return await policy_named(name, store)
    except StartRefused:
        if name != RUNNING:
            raise
        return await policy_named(str(settings.policy), store)


def _past(settings: Settings, request: str) -> tuple[Any, list[Any]]:
    """The newest entry of a request, and the others: a partner may use an id again.

    That a booking began is no answer, unless nothing else is known of it.
    """
    folder = audit_folder(settings)
    with reading(settings):
        found = newest_entries(folder, EntryFilter(request=request))[::-1]
    ended = [entry for entry in found if entry["outcome"] != BEGUN] or found
    if not ended:
        fail(f"the audit in {folder} knows no answer with the request id {request}")
    return ended[-1], ended[:-1]


async def _of_answer(settings: Settings, entry: Any, others: list[Any]) -> Explanation:
    operation = _BY_ID.get(entry["operation"])
    if operation is None or entry["level"] is None or entry["policy"] is None:
        fail(f"that call got no further than {entry['reason'] or 'the documents'}: nothing shown")
    async with opened_if_begun(settings) as store:
        named = await policy_named(entry["policy"], store)
        try:
            key = None if store is None else await KeyStore(store).get(entry["keyId"])
        except (UnknownKey, OddKey):
            key = None
    return Explanation(
        operation=operation,
        key=key,
        level=AccessLevel(entry["level"]),
        decided="the level that was applied, as the audit has it",
        policy=named,
        past=entry,
        others=others,
    )


def _decided(key: Key, operation: Operation) -> str:
    resource = operation.returns.name
    if not operation.returns.governed:
        return f"{resource} are always whole"
    if resource in key.scopes:
        return f"the key's scope {resource}={key.scopes[resource]}"
    return f"the key's level; it has no scope for {resource}"


def _lines(found: Explanation) -> Iterator[str]:
    whose = f"{legible(found.key.name)} ({found.key.id})" if found.key else "a key that is gone"
    yield f"{found.operation.id} for {whose}"
    if found.past is not None:
        count = len(found.past["recordIds"])
        records = "1 record" if count == 1 else f"{count} records"
        yield f"answer of {found.past['time'][:19]}Z: {found.past['outcome']}, {records}"
    if found.others:
        yield f"the newest of {len(found.others) + 1} with that request id; before:"
    for entry in found.others:
        operation = entry["operation"] or "no operation"
        yield f"  {entry['time'][:19]}Z {operation}: {entry['outcome']}"
    yield f"level {found.level}: {found.decided}"
    short, name = found.policy.hash[:12], found.policy.name
    yield f"policy {short}, as it ran" if name == short else f"policy {name}, hash {short}"
    if found.refused:
        yield found.refused
    every = found.reasons()
    width = max((len(reason.path) for reason in every), default=0)
    for reason in every:
        place = f" ({found.policy.place}:{reason.spot[0]}:{reason.spot[1]})" if reason.spot else ""
        if reason.path:
            yield f"  {reason.path:{width}}  {reason.sight:8}  {reason.why}{place}"
        elif reason.sight != "all":
            yield f"records: {reason.sight}: {reason.why}{place}"


def _members(found: Explanation) -> dict[str, Any]:
    policy = found.policy
    return {
        "operation": found.operation.id,
        "key": {"id": found.key.id, "name": found.key.name} if found.key else None,
        "level": found.level,
        "decided": found.decided,
        "refused": found.refused or None,
        "policy": {"name": policy.name, "hash": policy.hash, "place": policy.place},
        "answer": found.past,
        "others": list(found.others),
        "fields": [
            {
                "field": reason.path or None,
                "sight": reason.sight,
                "why": reason.why,
                "line": reason.spot and reason.spot[0],
                "column": reason.spot and reason.spot[1],
            }
            for reason in found.reasons()
        ],
    }
