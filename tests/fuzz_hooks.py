"""What generated requests need to know of this gateway: cursors that it made, times to come."""

import os
from datetime import UTC, datetime, timedelta

import schemathesis
from hypothesis import strategies as st

CURSORS = [each for each in os.environ.get("FUZZ_CURSORS", "").split(",") if each]


@schemathesis.hook
def map_query(context, query):  # type: ignore[no-untyped-def]
    """A cursor is opaque and bound to its filters: only one from a Link header is valid."""
    if query and "cursor" in query and context.operation.method.upper() == "GET":
        known = dict(each.split("=", 1) for each in CURSORS)
        path = context.operation.path
        if isinstance(query["cursor"], str) and path in known:
            return {"cursor": known[path]}
        query.pop("cursor")
    return query


@schemathesis.hook
def map_body(context, body):  # type: ignore[no-untyped-def]
    """A booking lies in the future: the schema cannot say so."""
    if isinstance(body, dict) and isinstance(body.get("scheduledAt"), str):
        try:
            moment = datetime.fromisoformat(body["scheduledAt"])
        except ValueError:
            return body
        if moment.tzinfo and moment <= datetime.now(UTC):
            later = datetime.now(UTC) + timedelta(days=30)
            body["scheduledAt"] = later.strftime("%Y-%m-%dT%H:%M:%SZ")
    return body


FUTURE = st.integers(1, 10_000_000).map(
    lambda seconds: (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
)
