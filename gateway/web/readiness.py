"""Whether a gateway is ready, and for what: its parts are asked, and none holds up an answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from gateway.background import ended
from gateway.observe.metrics import Metrics
from gateway.purposes import NEEDED_FOR, NotReady, Purpose

# Raises where the part is not ready; what it returns is shown.
Probe = Callable[[], Awaitable[Mapping[str, Any]]]
# Seconds between two questions to a part.
REMEMBERED = 1.0
# Seconds that a part has to answer: after that it is not ready.
PATIENCE = 2.0
# Seconds that an answer waits for parts that have answered before: what they said last counts until
# they say something else.
MOMENT = 0.1


class Part:
    """One part, asked in the background, at most once a second."""

    def __init__(self, name: str, probe: Probe) -> None:
        self.name = name
        self.purposes = NEEDED_FOR[name]
        self.answer: dict[str, Any] | None = None
        self.question: asyncio.Task[None] | None = None
        self._probe = probe
        self._began = self._ended = 0.0

    def ask(self) -> None:
        """Begin a question, unless one is under way or the last answer is fresh."""
        fresh = self.answer is not None and time.monotonic() - self._ended < REMEMBERED
        if self.question is None and not fresh:
            self._began = time.monotonic()
            self.question = asyncio.create_task(self._ask(), name=f"ask {self.name}")

    @property
    def was_asked(self) -> bool:
        """Whether anybody has wanted to know yet."""
        return self.answer is not None or self.question is not None

    def told(self) -> dict[str, Any]:
        """What it said last; that it is silent, where it has not answered a question in time."""
        late = self.question is not None and time.monotonic() - self._began >= PATIENCE
        if late or self.answer is None:
            return self._failed("no answer in time")
        return self.answer

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                told = await self._probe()
            self.answer = {"ready": True, "for": self.purposes, **told}
        except TimeoutError:
            self.answer = self._failed("no answer in time")
        except NotReady as error:
            self.answer = self._failed(str(error), error.stops)
        except Exception as error:  # noqa: BLE001 - whatever it is, the part is not ready
            self.answer = self._failed(str(error) or type(error).__name__)
        finally:
            self.question, self._ended = None, time.monotonic()

    def _failed(self, text: str, stops: Iterable[Purpose] | None = None) -> dict[str, Any]:
        reason, *more = text.splitlines()
        further = f" (and {len(more)} more)" if more else ""
        stopped = self.purposes if stops is None else tuple(stops)
        return {
            "ready": False,
            "for": self.purposes,
            "stops": stopped,
            "reason": reason + further,
        }


class Readiness:
    """All parts of a gateway, or of one of its processes; `stopping` once its end has begun."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._parts = [Part(name, probe) for name, probe in probes.items()]
        self.stopping = False

    @property
    def parts(self) -> dict[str, dict[str, Any]]:
        """What each part said last; those that were never asked are missing."""
        return {each.name: each.told() for each in self._parts if each.was_asked}

    @property
    def ready(self) -> bool:
        """As it was found when the parts were asked last."""
        return not self.stopping and all(part["ready"] for part in self.parts.values())

    async def report(self, purpose: Purpose | None = None) -> dict[str, Any]:
        """`ready`, and of each part whether it is and if not why.

        For one purpose only the parts that it needs are asked and told. It takes two seconds at
        most, and a tenth of one where each part has answered before.
        """
        wanted = [each for each in self._parts if purpose is None or purpose in each.purposes]
        await _answered(wanted)
        parts = {each.name: each.told() for each in wanted}
        reason = {"reason": "the gateway is shutting down"} if self.stopping else {}
        if purpose is not None:
            return {"ready": self._serves(purpose, parts), "for": purpose, **reason, "parts": parts}
        ready = not self.stopping and all(each["ready"] for each in parts.values())
        each = {purpose.value: self._serves(purpose, parts) for purpose in Purpose}
        return {"ready": ready, **each, **reason, "parts": parts}

    async def aclose(self) -> None:
        """Ask nothing more."""
        await ended(*(each.question for each in self._parts))

    def _serves(self, purpose: Purpose, parts: Mapping[str, Mapping[str, Any]]) -> bool:
        return not self.stopping and not any(purpose in stops(each) for each in parts.values())


def stops(part: Mapping[str, Any]) -> Iterable[str]:
    """The purposes that a part stops, as it is told."""
    found: Iterable[str] = part.get("stops", ())
    return found


async def _answered(parts: Iterable[Part]) -> None:
    """Ask them all; wait for those that have never answered, and for a moment for the others."""
    for each in parts:
        each.ask()
    under_way = [each for each in parts if each.question is not None]
    questions = [each.question for each in under_way if each.question is not None]
    if questions:
        new = any(each.answer is None for each in under_way)
        await asyncio.wait(questions, timeout=PATIENCE if new else MOMENT)


def watch_readiness(readiness: Readiness, metrics: Metrics) -> None:
    """Tell it among the figures, as it was when it was asked last."""
    metrics.ask("gateway_ready", lambda: float(readiness.ready))
    watch_parts(readiness, metrics)


def watch_parts(readiness: Readiness, metrics: Metrics) -> None:
    """Tell of the parts alone, where they are not a whole gateway's."""

    def parts() -> Mapping[tuple[str, ...], float]:
        return {(name,): float(part["ready"]) for name, part in readiness.parts.items()}

    metrics.ask_all("gateway_part_ready", parts)
