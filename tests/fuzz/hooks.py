"""What generated requests must know of this gateway, loaded by schemathesis in its own process.

A cursor is opaque and bound to its key and filters: the valid ones come in FUZZ_CURSORS, a JSON
object from path to cursor. Ids that exist come in FUZZ_IDS, by path or by the member's name. A
booking lies in the future, its animal lives (FUZZ_DECEASED are those that do not), its reason can
be seen whole, and an Idempotency-Key belongs to one request: no schema can say that.
"""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import schemathesis

from gateway.contract.fields import UNSEEN

DECEASED: list[str] = json.loads(os.environ.get("FUZZ_DECEASED", "[]"))
# The nearest that a clinic's horizon is by default, all time zones considered.
HORIZON = timedelta(days=363)
CURSORS: dict[str, str] = json.loads(os.environ.get("FUZZ_CURSORS", "{}"))
IDS: dict[str, str] = json.loads(os.environ.get("FUZZ_IDS", "{}"))


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Right cases get a cursor, a key and a time that fit; wrong ones stay as they are."""
    mode = str(case.meta.generation.mode).lower() if case.meta is not None else ""
    if "negative" in mode:
        return
    query = case.query if isinstance(case.query, dict) else {}
    if "cursor" in query:
        cursor = CURSORS.get(case.operation.path)
        case.query = {} if cursor is None else {"cursor": cursor}
    for values in (case.path_parameters, case.query, case.body):
        if isinstance(values, dict):
            supply(values, case.operation.path)
    if isinstance(case.body, dict):
        mend(case.body)
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid4())


def mend(body: dict[str, Any]) -> None:
    """Makes a booking one that the gateway takes, where its values are not of a wrong type."""
    time, reason = body.get("scheduledAt"), body.get("reason")
    if isinstance(time, str):
        body["scheduledAt"] = to_come(time)
    if isinstance(reason, str):
        body["reason"] = re.sub(UNSEEN, "", reason)
    if body.get("patientId") in DECEASED:
        body["patientId"] = IDS["patientId"]


def supply(values: dict[str, Any], path: str) -> None:
    """An id that exists, in place of every second one that was made up, and of one that is null."""
    for name in list(values):
        known = IDS.get(path if name in {"id", "stockId"} else name)
        made_up = values[name]
        if made_up is None and name == "id":  # a link from a record whose reference is null
            made_up = "0"
        if known and isinstance(made_up, str) and made_up[-1:] in tuple("02468ace"):
            values[name] = known


def to_come(text: str) -> str:
    """The moment itself where it may be booked, else one in a month."""
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        return text
    now = datetime.now(UTC)
    if moment.tzinfo is not None and now + timedelta(hours=1) < moment < now + HORIZON:
        return text
    return (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
