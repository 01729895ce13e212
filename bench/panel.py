"""What the panel's pages cost at 5,000 keys and 1,000,000 entries of the audit.

Each page is asked for again and again, one after the other, so that a slow spell of the machine
meets all of them; what is told is the time from the request to the whole answer.
"""

import asyncio
import http.client
import os
import re
import secrets
import statistics
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from socket import gethostname
from urllib.parse import urlencode
from uuid import uuid4

from adapters.sample import MAPPING
from bench.servers import Server
from bench.world import World
from gateway.administrators.administrator import AdministratorStore, Role
from gateway.administrators.passwords import Passwords
from gateway.audit.buffer import Writer
from gateway.audit.chains import Chains, audit_folder, named_place
from gateway.audit.entries import ANSWERED, REFUSED, Entry, key_file, secrets_at_start
from gateway.audit.questions import brought_up
from gateway.contract.access import LEVELS, Permission
from gateway.keys.key import Key
from gateway.keys.secret import digest, mint
from gateway.observe.lines import texts
from gateway.settings import Settings, load_settings
from gateway.store import Store, open_store
from gateway.store.tables import keys, usage, usage_days
from gateway.store.tables import secrets as key_secrets
from gateway.usage import DAY, minute_of

KEYS = int(os.environ.get("BENCH_KEYS", "5000"))
ENTRIES = int(os.environ.get("BENCH_ENTRIES", "1000000"))
DAYS = 30
# The place of a record that some hundred keys have read some hundred times.
MUCH_READ = 200
ROUNDS = 15
BOUND = 0.100  # seconds
PASSWORD = secrets.token_urlsafe(20)
_READS = ("get_client", "get_patient", "list_patients", "get_invoice", "list_stock")


def panel(world: World, folder: Path) -> None:
    """The table of pages."""
    port, admin = world.free_port(), world.free_port()
    config = folder / "panel.yaml"
    config.write_text(
        f"listen: 127.0.0.1:{port}\noperations_listen: 127.0.0.1:0\n"
        f"admin_listen: 127.0.0.1:{admin}\nstate: state-panel\nshutdown_delay: 0\n"
        f"backend:\n  url: sqlite:///clinic.db\n  mapping: {MAPPING}\n"
    )
    (folder / "state-panel").mkdir(mode=0o700)
    settings = load_settings(config, {})
    began = time.perf_counter()
    key_id, record = asyncio.run(_fill(settings))
    print(
        f"{KEYS:,} keys and {ENTRIES:,} entries over {DAYS} days, made in"
        f" {time.perf_counter() - began:.0f} s"
    )
    with Server("gateway", str(config), port) as server:
        browser = _Browser(admin)
        browser.sign_in()
        pages = dict(_pages(key_id, record))
        seconds: dict[str, list[float]] = {name: [] for name in pages}
        before = server.cpu()
        for turn in range(ROUNDS + 1):
            for name, path in pages.items():
                taken = browser.get(path)
                if turn:  # the first round warms up
                    seconds[name].append(taken)
        cpu = (server.cpu() - before) / (ROUNDS + 1) / len(pages)
    print(f"{'page':44} {'median':>9} {'most':>9}")
    for name, found in seconds.items():
        over = "" if statistics.median(found) < BOUND else "  over 100 ms"
        print(
            f"{name:44} {statistics.median(found) * 1e3:6.1f} ms {max(found) * 1e3:6.1f} ms{over}"
        )
    print(f"CPU of the server for one page: {cpu * 1e3:.1f} ms")


def _pages(key_id: str, record: str) -> Iterator[tuple[str, str]]:
    yield "keys", "/keys"
    yield "keys, a search", "/keys?q=partner+49"
    yield "keys, most of the limit used first", "/keys?order=share"
    yield "keys, unused for 90 days", "/keys?which=unused"
    yield "one key", f"/keys/{key_id}"
    yield "the form of a new key", "/keys/new"
    yield "what a partner sees", f"/preview?{urlencode({'key': key_id, 'resource': 'clients'})}"
    yield "policy", "/policy"
    yield "traffic", "/traffic"
    yield "traffic, its live part", "/traffic/live"
    yield "audit", "/audit"
    yield "audit, of one key", f"/audit?{urlencode({'key': key_id})}"
    yield "audit, of one record", f"/audit?{urlencode({'record': record})}"
    yield "audit, a key that never called", f"/audit?{urlencode({'key': str(uuid4())})}"
    yield "who has seen a client", f"/audit/who?{urlencode({'resource': 'clients', 'id': record})}"
    yield "directory", "/directory"
    yield "people", "/people"


class _Browser:
    """Keeps the cookies of one panel, and its connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._cookies: dict[str, str] = {}

    def sign_in(self) -> None:
        """As the bench's own administrator."""
        page = self._ask("GET", "/sign-in", {})[1]
        asked = re.search(r'name="asked" value="([^"]*)"', page)
        form = {"asked": asked[1] if asked else "", "name": "bench", "password": PASSWORD}
        status, _ = self._ask("POST", "/sign-in", form)
        if status != 303:
            raise RuntimeError(f"the panel does not let the bench in: {status}")

    def get(self, path: str) -> float:
        """Seconds to a whole page."""
        began = time.perf_counter()
        status, page = self._ask("GET", path, {})
        if status != 200:
            raise RuntimeError(f"{path} is {status}: {page[-400:]}")
        return time.perf_counter() - began

    def _ask(self, method: str, path: str, form: Mapping[str, str]) -> tuple[int, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        headers = {
            "Cookie": cookies,
            "Origin": f"http://127.0.0.1:{self._port}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self._line.request(method, path, urlencode(form) if form else None, headers)
        answer = self._line.getresponse()
        for told in answer.headers.get_all("Set-Cookie") or ():
            name, _, rest = told.partition("=")
            self._cookies[name] = rest.partition(";")[0]
        return answer.status, answer.read().decode()


async def _fill(settings: Settings) -> tuple[str, str]:
    """The store and the audit; the id of a key that calls much, and of a record that it saw."""
    store = open_store(settings.state / "gateway.db")
    await store.migrate()
    kept = await Passwords().hash(PASSWORD)
    now = datetime.now(UTC)
    await AdministratorStore(store).add("bench", Role.ADMIN, kept, now, one_time=False)
    ids = await _add_keys(store, now)
    records = [str(uuid4()) for _ in range(20_000)]
    await _write_audit(settings, store, ids, records, now)
    await _add_usage(store, ids, now)
    await brought_up(store, audit_folder(settings), lambda size: None)
    await store.aclose()
    return ids[0], records[MUCH_READ]


async def _add_keys(store: Store, now: datetime) -> list[str]:
    made_up, rows, held = Random(1), [], []  # noqa: S311 - a made-up clinic
    for number in range(KEYS):
        key = Key(
            name=f"Partner {number}",
            contact=f"somebody{number}@example.org",
            permissions=frozenset(Permission),
            level=made_up.choice(LEVELS),
            created_at=now - timedelta(days=made_up.randrange(1, 700)),
        )
        secret = mint()
        rows.append(
            {
                "id": key.id,
                "name": key.name,
                "contact": key.contact,
                "permissions": "[" + ", ".join(f'"{each}"' for each in Permission) + "]",
                "level": key.level.value,
                "scopes": "{}",
                "hourly_limit": key.limit,
                "created_at": key.created_at,
                "last_used_at": now - timedelta(days=made_up.randrange(200)),
                "revision": 1,
            }
        )
        held.append(
            {
                "digest": digest(secret),
                "key_id": key.id,
                "hint": secret[:8],
                "created_at": key.created_at,
            }
        )
    async with store.begin() as connection:
        await connection.execute(keys.insert(), rows)
        await connection.execute(key_secrets.insert(), held)
    return [str(row["id"]) for row in rows]


async def _write_audit(
    settings: Settings, store: Store, ids: list[str], records: list[str], now: datetime
) -> None:
    """Lines as a gateway writes them, some on each day; few keys make most calls."""
    folder = audit_folder(settings)
    secret = secrets_at_start(key_file(settings), may_make=True)[0]
    chains, chain, made_up = Chains(store), str(uuid4()), Random(2)  # noqa: S311 - the same
    first = now - timedelta(days=DAYS)
    writer = Writer(folder, chain, lambda: secret, first, clock=lambda: 0.0)
    await chains.begin(chain, named_place(folder), gethostname(), os.getpid(), first)
    for day in range(DAYS):
        at = first + timedelta(days=day)
        lines = [_entry(made_up, ids, records, at) for _ in range(ENTRIES // DAYS)]
        await asyncio.to_thread(writer.write, texts(lines), at)
    await chains.record(chain, writer.head, now, ended=False)
    writer.close()


def _entry(made_up: Random, ids: list[str], records: list[str], at: datetime) -> Entry:
    key = ids[int(len(ids) * made_up.random() ** 4)]
    refused = made_up.random() < 0.02
    shown = [] if refused else [records[int(len(records) * made_up.random() ** 3)]]
    return Entry(
        time=at,
        request_id=uuid4().hex,
        key_id=key,
        operation=made_up.choice(_READS),
        record_ids=shown,
        level="BASIC",
        policy="0" * 12,
        outcome=REFUSED if refused else ANSWERED,
        reason="PermissionDenied" if refused else None,
    )


async def _add_usage(store: Store, ids: list[str], now: datetime) -> None:
    """An hour of minutes, and the days before, of the keys that call most."""
    minute, some = minute_of(now), ids[:200]
    sums = {"answered": 5, "refused": 1, "forbidden": 0, "limited": 0, "failed": 0}
    minutes = [
        {"minute": minute - ago, "key_id": key, "operation": "get_client", **sums}
        for ago in range(60)
        for key in some
    ]
    days = [
        {"day": minute // DAY - ago, "key_id": key, "operation": name, **sums}
        for ago in range(DAYS)
        for key in some
        for name in _READS
    ]
    async with store.begin() as connection:
        await connection.execute(usage.insert(), minutes)
        await connection.execute(usage_days.insert(), days)
