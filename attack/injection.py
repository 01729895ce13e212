"""Whether a value that a partner sends reaches a statement as text.

sqlmap tries every parameter, path, header and JSON member of the 14 operations, at level 5 and
risk 2, against the sample clinic on this machine. INJECTION_SECONDS bounds each place (900): one
that is not done by then counts as not tried, which is no pass.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from yarl import URL

from attack.base import Missing, Row
from attack.clinic import Clinic
from attack.target import Target
from gateway.contract.operations import BASE_PATH, OPERATIONS, Operation

SECONDS = float(os.environ.get("INJECTION_SECONDS", "900"))
AT_ONCE = 2
MARK = "*"
"""What sqlmap takes the place behind for one to try."""
# A booking's time is taken from the second time on.
FINE = {200, 201, 409}
HEADERS = {
    "X-API-Key": "",
    "X-Request-Id": "attacker-1",
    "User-Agent": "attacker",
    "Referer": "http://127.0.0.1/",
    "Cookie": "a=1",
    "X-Forwarded-For": "127.0.0.1",
    "Idempotency-Key": "attacker-1",
}
_CLEAN = re.compile(r"parameter '[^\n]*' does not seem to be injectable").findall
_FOUND = re.compile(r"^Parameter: (.+)$", re.MULTILINE).findall
_DONE = ("all tested parameters do not appear to be injectable", "identified the following")


@dataclass(frozen=True)
class Place:
    """One place in a request, and the request with a mark behind that place."""

    name: str
    text: str


@dataclass(frozen=True)
class Tried:
    """What sqlmap said of a place: injectable ones by name; done if it came to an end."""

    name: str
    found: tuple[str, ...]
    done: bool

    @property
    def passed(self) -> bool:
        return self.done and not self.found

    @property
    def verdict(self) -> str:
        if self.found:
            return f"INJECTABLE: {', '.join(self.found)}"
        return "not injectable" if self.done else "NOT DONE in its time"


def request(method: str, port: int, target: str, headers: Mapping[str, str], body: str = "") -> str:
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\n".join([*lines, "", body])


def answered(port: int, text: str) -> tuple[int, str, bytes]:
    """Status, Link and body of what a request is answered."""
    head, _, body = text.partition("\n\n")
    first, _, *lines = head.split("\n")
    method, target, _ = first.split(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, target, body.encode() or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Link", ""), answer.read()
    finally:
        connection.close()


def places(port: int, secret: str, ids: Mapping[str, str]) -> Iterator[Place]:
    """Every place of every operation; what is sent of every call is tried in one that reads."""
    for operation in OPERATIONS:
        if operation.creates:
            yield from _members(operation, port, secret, ids)
        else:
            yield from _parts(operation, port, secret, ids)
    known = {name: value or secret for name, value in HEADERS.items()}
    for name, value in known.items():
        marked = {**known, name: value + MARK}
        yield Place(f"header {name}", request("GET", port, f"{BASE_PATH}/clients", marked))


def _parts(operation: Operation, port: int, secret: str, ids: Mapping[str, str]) -> Iterator[Place]:
    path = _path(operation, ids)
    if "{" in operation.path:
        yield Place(f"{operation.id} path", _get(port, secret, path + MARK, {}))
    needed = {each.name: _value(each.name, ids) for each in operation.query if each.required}
    for each in operation.query:
        if each.name == "cursor":
            _, link, _ = answered(port, _get(port, secret, path, {**needed, "limit": "1"}))
            value = URL(link[1:].partition(">")[0]).query["cursor"] if link else "none"
        else:
            value = _value(each.name, ids)
        query = {**needed, each.name: value + MARK}
        yield Place(f"{operation.id} {each.name}", _get(port, secret, path, query))


def _get(port: int, secret: str, path: str, query: Mapping[str, str]) -> str:
    asked = f"?{urlencode(query, safe=MARK)}" if query else ""
    return request("GET", port, path + asked, {"X-API-Key": secret})


def _path(operation: Operation, ids: Mapping[str, str]) -> str:
    fixed, parameter, _ = operation.path.partition("{")
    resource = "clients" if "clientId" in operation.path else operation.returns.name
    return BASE_PATH + fixed + (ids[resource] if parameter else "")


def _value(name: str, ids: Mapping[str, str]) -> str:
    known = {
        "limit": "5", "search": "Ma", "updatedSince": "2020-01-01T00:00:00Z", "status": "PAID",
        "vetId": "vet", "date": "day", "clientId": "clients", "category": "category",
        "appointmentTypeId": "appointmentTypes",
    }[name]  # fmt: skip
    return ids.get(known, known)


def _members(
    operation: Operation, port: int, secret: str, ids: Mapping[str, str]
) -> Iterator[Place]:
    draft = {
        "clientId": ids["clients"], "patientId": ids["patients"], "vetId": ids["vet"],
        "scheduledAt": ids["slot"], "appointmentTypeId": ids["appointmentTypes"],
        "reason": "limps",
    }  # fmt: skip
    headers = {"X-API-Key": secret, "Content-Type": "application/json"}
    for name in draft:
        told = [f'"{each}":"{v}{MARK if each == name else ""}"' for each, v in draft.items()]
        body = f'{{{",".join(told)},"isUrgent":false}}'
        text = request("POST", port, BASE_PATH + operation.path, headers, body)
        yield Place(f"{operation.id} {name}", text)
    body = "{" + ",".join(f'"{each}":"{value}"' for each, value in draft.items())
    urgent = f'{body},"isUrgent":false{MARK}}}'
    text = request("POST", port, BASE_PATH + operation.path, headers, urgent)
    yield Place(f"{operation.id} isUrgent", text)


def tried(place: Place, folder: Path, seconds: float, *more: str) -> Tried:
    """What sqlmap finds at a place; everything that it writes goes into the folder."""
    file = folder / f"{re.sub(r'[^A-Za-z]+', '-', place.name)}.txt"
    file.write_text(place.text)
    own = folder / file.stem
    words = [
        program(), "-r", str(file), "--batch", "--level=5", "--risk=2", "--dbms=sqlite",
        "--output-dir", str(own), "--tmp-dir", str(folder), "--flush-session", "--ignore-proxy",
        "--ignore-code=401", "--disable-coloring", "--skip-waf", "--timeout=10", "--retries=1",
        "--time-sec=2", "--ignore-stdin", "--answers=reduce=N", *more,
    ]  # fmt: skip
    home = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "no_proxy": "*"}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=seconds, env=home, check=False
        )
    except subprocess.TimeoutExpired:
        return Tried(place.name, (), done=False)
    finished = any(each in done.stdout for each in _DONE)
    found = tuple(_FOUND(done.stdout))
    return Tried(place.name, found, done=finished and bool(found or _CLEAN(done.stdout)))


def program() -> str:
    found = shutil.which("sqlmap")
    if found is None:
        raise Missing("sqlmap is not installed: apt-get install sqlmap")
    return found


def run(target: Target) -> Row:
    """Every place of the sample clinic, a few at a time; each is told as it is done."""
    several = [*places(target.port, target.stolen, Clinic(target).ids())]
    found = attacked(several, target.port, SECONDS, tell)
    failures = tuple(f"{each.name}: {each.verdict}" for each in found if not each.passed)
    return Row(attack="injection", failures=failures, note=f"{len(found)} places")


def attacked(
    several: Sequence[Place],
    port: int,
    seconds: float,
    told: Callable[[Tried], None] = lambda _: None,
) -> list[Tried]:
    """What is found at each place; what is refused before anything is tried could not be found."""
    for place in several:
        status, _, body = answered(port, place.text.replace(MARK, ""))
        if status not in FINE:
            raise ValueError(f"{place.name} is not as it should be: {status} {body[:300]!r}")
    found = []
    with TemporaryDirectory(prefix="injection-") as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        for each in pool.map(partial(tried, folder=Path(folder), seconds=seconds), several):
            found.append(each)
            told(each)
    return found


def tell(each: Tried) -> None:
    print(f"{each.name:45} {each.verdict}", flush=True)
