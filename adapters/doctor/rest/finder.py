"""Finds single records of a mapped JSON backend, and says which condition hides one."""

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote, quote_plus

from adapters.base import AdapterError, NotFound
from adapters.doctor.comparison import Finder
from adapters.doctor.conditions import hiding, split_at
from adapters.doctor.trail import Found, as_shown
from adapters.mapped.records import Endless
from adapters.mapping.paths import holds, path
from adapters.rest.adapter import RestAdapter
from adapters.rest.client import Client, Request
from adapters.rest.login import OAuthCall
from adapters.rest.paging import MOST_ROWS
from adapters.rest.reader import Received
from adapters.rest.records import JsonRows
from adapters.rest.resource import ResourceCalls
from adapters.values.convert import Unreadable

MASKED = "********"
# Characters of a body that are told.
LONGEST_BODY = 2_000
PATIENCE = 20.0


class HeardClient(Client):
    """A client that keeps each request as a text without secrets, and the status that it got."""

    def __init__(
        self, address: str, *, timeout: float, in_flight: int, secrets: Mapping[str, str]
    ) -> None:
        super().__init__(address, timeout=timeout, in_flight=in_flight)
        self.heard: list[str] = []
        self._address, self._secrets = address.rstrip("/"), list(filter(None, secrets.values()))

    async def read(self, request: Request, headers: Mapping[str, str]) -> Received:
        status = "no answer"
        try:
            received = await super().read(request, headers)
            status = str(received.status)
            return received
        finally:
            self.heard.append(self._told(request, status))

    def _told(self, request: Request, status: str) -> str:
        body = ""
        # a form for a token may hold one that the server gave
        if request.body and request.label != OAuthCall.label:
            body = f"\n{request.body[:LONGEST_BODY].decode(errors='replace')}"
        text = f"{request.method} {self._address}{request.target} -> {status}{body}"
        for secret in sorted(self._secrets, key=len, reverse=True):
            spelt = (secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1])
            for spelling in dict.fromkeys(spelt):
                text = text.replace(spelling, MASKED)
        return text


class RestFinder(Finder):
    """Reads records by the calls of an adapter of its own."""

    adapter: RestAdapter

    def __init__(self, adapter: RestAdapter) -> None:
        super().__init__()
        options = adapter.options
        own = replace(options, report=lambda trouble: None, timeout=max(PATIENCE, options.timeout))
        client = HeardClient(
            own.url, timeout=own.timeout, in_flight=own.in_flight, secrets=own.credentials
        )
        self.adapter = RestAdapter(own, client)
        self.asked = client.heard

    async def found(self, resource: str, public_id: str) -> Found | None:
        reader = self.adapter.readers[resource]
        try:
            row = await reader.row(public_id, ())
        except NotFound:
            row = await self._in_list(resource, reader, public_id)
        if row is None:
            return None
        whole = as_shown(row) if isinstance(row, dict) else {"(record)": as_shown(row)}
        lists = _lists(reader.rows, row)
        return Found(row=row, lists=lists, whole=whole, hidden=self._hiding(resource, row))

    async def _in_list(self, resource: str, reader: ResourceCalls, public_id: str) -> Any | None:
        """Returns a record that the list has and `where` hides, where no call reads one."""
        if self.adapter.mapping.resources[resource].one is not None:
            return None
        listing = reader.listing()
        if listing is None:
            return None
        pager, ask = listing
        with suppress(Endless):
            async with aclosing(pager.batches(ask, None, MOST_ROWS)) as batches:
                async for batch in batches:
                    for row in batch.rows:
                        with suppress(Unreadable):
                            if reader.rows.id_of(row) == public_id:
                                return row
                    if batch.last:
                        return None
        self.why = "the list is longer than a search goes through"
        return None

    def _hiding(self, resource: str, row: Any) -> str:
        """Returns which parts of `where` do not hold for the record; "" where all do."""
        reader, where = (
            self.adapter.readers[resource],
            self.adapter.mapping.resources[resource].where,
        )
        document = self.adapter.document
        if not where:
            return ""
        problem = document.problem(("resources", resource, "where"), "")
        place = f"{problem.file}:{problem.line}:{problem.column}"
        try:
            if reader.rows.exists(row):
                return ""
        except AdapterError as error:
            return f"`where` cannot be asked of it ({place}): {error}"
        failing = []
        for part in split_at(where, "&&"):
            with suppress(Unreadable, ValueError):
                failing += [] if holds(path(part)(row)) else [part]
        return hiding(place, where, failing)


def _lists(rows: JsonRows, row: Any) -> dict[str, Sequence[Any]]:
    found: dict[str, Sequence[Any]] = {}
    for name, find in rows.items.items():
        with suppress(Unreadable):
            members = find(row)
            found[name] = members if isinstance(members, list) else []
    return found
