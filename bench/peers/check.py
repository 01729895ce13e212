"""Whether a target does the work that it is compared for, found by asking it."""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from bench.peers.bare import OPEN
from bench.peers.farm import Address
from bench.peers.scenarios import LISTS, RECORDS
from bench.peers.targets import SMALL_LIMIT, Target

_MISSING = "/clients/de1c1f7e-4f1a-4d7e-9a9b-000000000000"
_QUOTA = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}


class Answer(NamedTuple):
    """What came back; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Case(NamedTuple):
    """What is asked, so many times, and whether the last answer is the one that it must be."""

    name: str
    path: str
    secret: str | None
    is_right: Callable[[Answer], bool]
    times: int = 1


def ask(address: Address, path: str, secret: str | None) -> Answer:
    """Returns one answer, on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=5)
    try:
        headers = {} if secret is None else {"X-API-Key": secret}
        connection.request("GET", address.prefix + path, headers=headers)
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, named, answer.read())
    finally:
        connection.close()


def faults_of(target: Target) -> list[str]:
    """Returns what each address of a target does otherwise than it is compared for."""
    return [
        f"{target.name}, {variant}: {case.name}: {fault}"
        for variant, address in target.addresses.items()
        for case in cases(target)
        if (fault := _fault(address, case)) is not None
    ]


def _fault(address: Address, case: Case) -> str | None:
    try:
        *_, answer = [ask(address, case.path, case.secret) for _ in range(case.times)]
        is_right = case.is_right(answer)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None if is_right else f"{answer.status} {answer.body[:120].decode(errors='replace')}"


def cases(target: Target) -> Iterator[Case]:
    """Yields what a target is asked; what does no work only has to show the right records."""
    key, unpermitted, small = target.keys
    yield Case("a list of 50 without address", LISTS[0], key, _shows_fifty)
    if not target.works:
        yield Case("a record without address", RECORDS[0], key, _shows_one)
        return
    for path in RECORDS[1:3]:
        yield Case("the record that was asked for", path, key, partial(_shows_it, path))
    yield Case("401 without a key", RECORDS[0], None, partial(_refuses, 401))
    yield Case("401 with a bad key", RECORDS[0], "vk_nobody", partial(_refuses, 401))
    yield Case("403 without the permission", RECORDS[0], unpermitted, partial(_refuses, 403))
    yield Case("400 for a bad id", "/clients/nonsense", key, partial(_refuses, 400))
    yield Case("404 for an id that is not there", _MISSING, key, partial(_refuses, 404))
    yield Case("429 beyond the limit", RECORDS[0], small, _is_told_when, SMALL_LIMIT + 1)


def _shows_one(answer: Answer) -> bool:
    return answer.status == 200 and set(json.loads(answer.body)) == OPEN


def _shows_it(path: str, answer: Answer) -> bool:
    is_counted = answer.headers.keys() >= _QUOTA
    return is_counted and _shows_one(answer) and path.endswith(json.loads(answer.body)["id"])


def _shows_fifty(answer: Answer) -> bool:
    records = json.loads(answer.body)
    return answer.status == 200 and [set(each) for each in records] == [OPEN] * 50


def _refuses(status: int, answer: Answer) -> bool:
    return answer.status == status and "message" in json.loads(answer.body)


def _is_told_when(answer: Answer) -> bool:
    left = json.loads(answer.body).get("retryAfter", 0)
    return _refuses(429, answer) and answer.headers.get("retry-after") == f"{left}" and left > 0
