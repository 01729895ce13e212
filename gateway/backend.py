"""Opens the practice system's adapter with the sealing secret, and checks what it can serve."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import field as member
from hashlib import sha256
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from yarl import URL

from adapters import ADAPTERS, base, completed, open_adapter
from adapters.base import Adapter, Report, Shapes
from adapters.documents.document import read_document
from adapters.documents.problems import DocumentErrors, Problem
from adapters.wrappers.cache import Cached, CacheRule
from adapters.wrappers.guard import Guarded, Limits
from adapters.wrappers.memory import LocalMemory, Memory, open_shared
from gateway import __version__
from gateway.booking.times import StoredTimes
from gateway.contract.operations import OPERATIONS, offered
from gateway.contract.resources import RESOURCES
from gateway.contract.window import BookingWindow
from gateway.events import Events
from gateway.observe.metrics import Metrics
from gateway.policy.policy import Policy
from gateway.sealing import StoredIds, sealing_secret
from gateway.settings import BackendSettings, Settings, StartRefused
from gateway.settings.kinds import secret_of, secret_text
from gateway.store import Store

# The methods of every adapter.
VERBS = tuple(name for name, member in vars(Adapter).items() if callable(member) and name[0] != "_")
# What every adapter tells of itself.
FACTS = tuple(name for name, member in vars(Adapter).items() if isinstance(member, property))
# Seconds that a readiness check waits for a look at the practice system's tables.
LOOK_PATIENCE = 1.0
# Seconds between two such looks.
CHECK_EVERY = 30.0
# Seconds that calls wait for the first copy of the practice's files, before a gateway serves.
FIRST_COPY = 20.0
# The breaker's states, as its metric numbers them.
BREAKER = ("closed", "half-open", "open")


class BackendTroubles:
    """The breaker's `state`, which is `closed`, `open` or `half-open`; changes are reported."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self.state = "closed"
        self.metrics = metrics
        self._events = events
        metrics.ask("gateway_backend_breaker", lambda: BREAKER.index(self.state))
        self.watch_copy(float)  # 0 seconds, unless there is a copy

    def watch_copy(self, age: Callable[[], float]) -> None:
        """Takes what tells how old the copy of the practice's files is, in seconds."""
        self.metrics.ask("gateway_backend_copy_age_seconds", age)

    def changed(self, state: str) -> None:
        """Sets the breaker's new state; a try that fails is no news."""
        before, self.state = self.state, state
        if state == "closed":
            self._events.report("practice_answers")
        elif before == "closed" and state == "open":
            self._events.report("practice_left_alone")

    def copied(self, news: base.CopyNews) -> None:
        """Tells that the practice's files cannot be copied anew, or can be again."""
        age = None if news.age is None else round(news.age)
        if news.why:
            self._events.report("copy_failed", files=news.source, age=age, why=news.why)
        else:
            self._events.report("copy_renewed", files=news.source, age=age)


def check_configured(settings: Settings) -> None:
    """Raises StartRefused where no practice system is named at all."""
    backend = settings.backend
    missing = [name for name in ("url", "mapping") if not getattr(backend, name)]
    if backend.adapter in ADAPTERS and missing:
        named = " and ".join(f"backend.{name}" for name in missing)
        raise StartRefused(
            f"{named} must say where the practice system is: write it into gateway.yaml here, or"
            " name your file with --config (`clinic-gateway demo` makes an example in .demo)"
        )


def at_address(settings: Settings, url: str) -> Settings:
    """Returns the settings with another address of the practice system."""
    backend = settings.backend.model_copy(update={"url": secret_of(url)})
    return settings.model_copy(update={"backend": backend})


def is_at(settings: Settings, url: str) -> bool:
    """Returns whether the address leads to the very practice system of the settings."""
    own = secret_text(settings.backend.url)
    with suppress(ValueError):  # what is no address is told by the adapter
        return _place_of(own) == _place_of(url)
    return own == url


def _place_of(url: str) -> tuple[str, int | None, str]:
    """Returns what an address leads to, however it is spelt, and over which line."""
    address = URL(url)
    port = None if address.is_default_port() else address.port
    return (address.host or "").lower().rstrip("."), port, address.path.rstrip("/")


async def open_backend(
    settings: Settings, store: Store, report: Report, troubles: BackendTroubles | None = None
) -> tuple[Adapter, bytes]:
    """Returns the adapter of the settings, and the sealing secret; the store must be migrated."""
    secret = await sealing_secret(settings, store)
    inner = await bare_adapter_of(settings, secret, report, store, troubles)
    return wrapped(settings, inner, troubles, secret), secret


def wrapped(
    settings: Settings, inner: Adapter, troubles: BackendTroubles | None, secret: bytes
) -> Adapter:
    """Returns the adapter, guarded and cached by the settings; `troubles` hears how it fares."""
    backend = settings.backend
    limits = Limits(
        timeout=backend.timeout,
        booking_timeout=backend.booking_timeout,
        in_flight=backend.most_calls,
        queue=backend.queue,
        failures=backend.breaker_failures,
        pause=backend.breaker_pause,
    )
    kept = list(remembered(settings))
    most = max(rule.seconds for rule in kept)
    memory = _memory(settings, secret, most) if most else None
    if troubles is None:
        guarded = Guarded(inner, limits)
        return guarded if memory is None else Cached(guarded, kept, memory)
    metrics = troubles.metrics
    guarded = Guarded(inner, limits, changed=troubles.changed, called=metrics.backend_call)
    metrics.ask("gateway_backend_pool_in_use", lambda: guarded.room.in_use)
    metrics.ask("gateway_backend_pool_waiting", lambda: guarded.room.waiting)
    if memory is None:
        return guarded
    cached = Cached(guarded, kept, memory)
    own = memory if isinstance(memory, LocalMemory) else None
    metrics.ask_all(
        "gateway_cache_reads_total",
        lambda: {(outcome,): times for outcome, times in cached.outcomes.items()},
    )
    metrics.ask("gateway_cache_entries", lambda: len(own.kept) if own else 0)
    metrics.ask("gateway_cache_bytes", lambda: own.kept.current_size() if own else 0)
    return cached


def _memory(settings: Settings, secret: bytes, most: float) -> Memory:
    cache, url = settings.cache, settings.cache.url.get_secret_value()
    if url == "memory:":
        return LocalMemory(cache.entries, cache.bytes)
    backend = settings.backend
    mapping = backend.mapping.read_bytes() if backend.mapping else b""
    # what an answer depends on: where the practice system is, and how it is read
    parts = (__version__, backend.adapter, secret_text(backend.url), sha256(mapping).hexdigest())
    try:
        return open_shared(url, secret=secret, scope="\n".join(parts).encode(), most=most)
    except ValueError as error:
        raise StartRefused(str(error), "cache.url") from error


def clinic_zone(settings: Settings) -> ZoneInfo:
    """Returns the zone of the clinic's wall clock: the setting's, else the mapping's, else UTC."""
    if settings.zone is not None:
        return ZoneInfo(settings.zone)
    mapping = settings.backend.mapping
    # what is wrong with the mapping or its zone is reported where it is opened
    with suppress(DocumentErrors, ZoneInfoNotFoundError, ValueError, OSError, TypeError, KeyError):
        if mapping is not None:
            return ZoneInfo(read_document(mapping).data["zone"])
    return ZoneInfo("UTC")


def booking_window(settings: Settings) -> BookingWindow:
    """Returns the window in which partners may book."""
    booking, zone = settings.booking, clinic_zone(settings)
    return BookingWindow(horizon=booking.horizon, lead_time=booking.lead_time, zone=zone)


def remembered(settings: Settings) -> Iterator[CacheRule]:
    """Yields for how long the answers of each reading operation are cached."""
    for operation in OPERATIONS:
        if not operation.creates:
            only = (base.Filter("equals", (name,), value) for name, value in operation.only)
            yield CacheRule(
                resource=operation.returns.name,
                many=operation.many,
                seconds=getattr(settings.cache, operation.id),
                only=frozenset(only),
            )


async def bare_adapter_of(
    settings: Settings,
    secret: bytes,
    report: Report,
    store: Store | None = None,
    troubles: BackendTroubles | None = None,
) -> Adapter:
    """Returns the adapter of the settings, unwrapped; without `store` it cannot serve.

    Raises StartRefused, or DocumentErrors of its mapping.
    """
    backend = settings.backend
    options = options_of(settings, secret, report, store, troubles)
    try:
        adapter = open_adapter(backend.adapter, await completed(backend.adapter, options))
    except ValueError as error:
        raise StartRefused(str(error)) from error
    lacking = [name for name in VERBS if not callable(getattr(adapter, name, None))]
    lacking += [name for name in FACTS if not hasattr(adapter, name)]
    if lacking:
        raise StartRefused(
            f"the adapter {backend.adapter} has no {', '.join(lacking)}: an adapter has all"
            " members of adapters/base.py; docs/own-adapter.md shows a whole one"
        )
    return adapter


def options_of(
    settings: Settings,
    secret: bytes,
    report: Report,
    store: Store | None = None,
    troubles: BackendTroubles | None = None,
) -> base.AdapterOptions:
    """Returns what an adapter of the settings is made of."""
    backend, is_alone = settings.backend, settings.workers * settings.nodes == 1
    return base.AdapterOptions(
        url=secret_text(backend.url),
        mapping=backend.mapping,
        secret=secret,
        shapes=shapes(),
        report=report,
        timeout=backend.timeout,
        booking_timeout=backend.booking_timeout,
        in_flight=backend.most_calls,
        ids=None if store is None else StoredIds(store, is_alone=is_alone),
        times=None if store is None else StoredTimes(store),
        credentials=credentials(backend),
        copy=_copy_rules(settings, troubles),
    )


def _copy_rules(settings: Settings, troubles: BackendTroubles | None) -> base.CopyRules:
    """Returns how a copy of files is kept; a command waits for it however long it takes."""
    backend = settings.backend
    rules = base.CopyRules(
        folder=settings.state / "copy", refresh=backend.refresh, stale_after=backend.stale_after
    )
    if troubles is None:
        return rules
    return replace(rules, waits=FIRST_COPY, heard=troubles.copied, watched=troubles.watch_copy)


def credentials(backend: BackendSettings) -> dict[str, str]:
    """Returns the credentials for the practice system, as far as they were given."""
    given = {"user": backend.user, "password": backend.password, "token": backend.token}
    return {name: secret_text(value) for name, value in given.items() if value is not None}


def shapes() -> Shapes:
    """Returns the contract's fields in the form that an adapter takes."""
    return {
        resource.name: {
            path: base.FieldShape(
                format=field.format.name, values=field.values, refers=field.refers, many=field.many
            )
            for path, field in zip(resource.paths, map(resource.at, resource.paths), strict=True)
        }
        for resource in RESOURCES
    }


def check_serves(adapter: Adapter, settings: Settings) -> None:
    """Raises StartRefused or DocumentErrors where the adapter cannot answer what it offers."""
    unserved = list(_unserved(adapter))
    mapping = settings.backend.mapping
    if unserved and (mapping is None or settings.backend.adapter not in ADAPTERS):
        place, text = unserved[0]
        raise StartRefused(f"{text}: write {'.'.join(place)}")
    if unserved and mapping is not None:
        document, problems = read_document(mapping), list[Problem]()
        for place, text in unserved:
            remedy = f"write {'.'.join(place)}"
            if place in document.marks:
                remedy = "it is mapped, but no list can be filtered by it (see filters and sift)"
            said, code = f"{text}: {remedy}", "unserved-operation"
            problems.append(document.problem(place, said, code, at_key=True))
        raise DocumentErrors(problems)


def unserved_rows(adapter: Adapter, policy: Policy) -> Sequence[Problem]:
    """Returns why the policy's row conditions cannot be applied, once for all levels."""
    rows = ((resource, redactor.only) for (resource, _), redactor in policy.redactors.items())
    faults = (adapter.narrows(resource, only) for resource, only in rows if only)
    return sorted(set[Problem]().union(*faults))


def _unserved(adapter: Adapter) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields where the mapping should have what the adapter lacks, and why."""
    for operation in offered(adapter.resources, books=adapter.books):
        name = operation.returns.name
        in_path = (p.fields for p in operation.params if p.where == "path" and p.match)
        needed = {name for name, _ in operation.only}.union(*in_path)
        missing = needed - adapter.filterable.get(name, frozenset())
        if missing:
            what = f"filter {name} by {', '.join(sorted(missing))}"
            text = f"the adapter cannot {what}, which {operation.id} needs; complete its mapping"
            yield ("resources", name, "fields", min(missing)), text


@dataclass(slots=True, eq=False)
class BackendProbe:
    """A check that the practice system answers, and still has all that the mapping names.

    The tables are looked at every CHECK_EVERY seconds, and each time while something is wrong. A
    look may take many seconds over a slow line; until it ends, the last outcome stands.

    `warnings` are what only the records of the last look say; `warn` is called with the place and
    the text of each new one.
    """

    adapter: Adapter
    clock: Callable[[], float] = time.monotonic
    warn: Callable[..., None] = lambda place, said: None
    warnings: tuple[Problem, ...] = ()
    _sound_at: float | None = None
    _look: asyncio.Task[None] | None = None
    _wrong: Exception | None = member(
        default_factory=lambda: base.BackendTimeout("its tables are still being looked at")
    )

    async def __call__(self, patience: float | None = LOOK_PATIENCE) -> None:
        """Raises DocumentErrors or AdapterError; a look has `patience` seconds, with None any."""
        await self.adapter.ping()
        sound = self._sound_at
        if self._look is None and (sound is None or self.clock() - sound >= CHECK_EVERY):
            self._look = asyncio.create_task(self._check())
        if self._look is not None:
            await asyncio.wait([self._look], timeout=patience)
        if self._wrong is not None:
            raise self._wrong.with_traceback(None)

    async def _check(self) -> None:
        try:
            warnings = tuple(await self.adapter.check() or ())
            for new in sorted({*warnings}.difference(self.warnings)):
                self.warn(place=str(new).removesuffix(f": {new.text}"), said=new.text)
            self.warnings = warnings
        except Exception as error:  # noqa: BLE001 - whatever it is, who asks is told
            self._wrong, self._sound_at = error, None
        else:
            self._wrong, self._sound_at = None, self.clock()
        finally:
            self._look = None

    async def aclose(self) -> None:
        """Ends a look that goes on."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])
