"""How each part fares: ready, ready with a flaw, or not; in words, with what to do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.admin.sampler import Sampler
from gateway.inquiries.traffic import gauge

ORDER = ("backend", "store", "keys", "audit", "limiter", "policy", "loop", "workers")
# The breaker's states as the figure tells them, with a mark for each.
_BREAKERS = (("closed", "whole"), ("half_open", "masked"), ("open", "bad"))
Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTold:
    """One part: `said` and `do` name texts, `reason` is what readiness says itself.

    `place` is where it is, where that can be told apart.
    """

    name: str
    mark: str
    state: str
    said: str
    do: str | None = None
    reason: str = ""
    place: str = ""


def parts_told(parts: Mapping[str, Part]) -> list[PartTold]:
    """Each part, those of the workers too, in one order."""
    found: dict[str, list[tuple[str, Part]]] = {}
    for name, who, part in _each(parts):
        found.setdefault(name, []).append((who, part))
    ordered = [name for name in ORDER if name in found]
    places = {name: str(found[name][-1][1].get("url", "")) for name in ordered}
    return [replace(_told(name, found[name]), place=places[name]) for name in ordered]


def breaker(sampler: Sampler) -> Mapping[str, Any]:
    """Whether the practice system is asked, and since when that has been so."""
    figures = sampler.figures.value
    number = 0 if figures is None else int(gauge(figures.snapshot, "gateway_backend_breaker"))
    state, mark = _BREAKERS[number]
    return {"state": state, "mark": mark, "since": sampler.breaker_since}


def _each(parts: Mapping[str, Part]) -> Iterator[tuple[str, str, Part]]:
    """Name, whose it is, and the part."""
    for name, part in parts.items():
        yield name, "", part
    for worker in parts.get("workers", {}).get("each", ()):
        who = f"worker {worker['worker']}"
        for name, part in worker["parts"].items():
            yield name, who, part
        if not worker["ready"] and all(part["ready"] for part in worker["parts"].values()):
            yield "workers", who, {"ready": False, "reason": worker.get("reason", "")}


def _told(name: str, each: list[tuple[str, Part]]) -> PartTold:
    for who, part in each:
        if not part["ready"]:
            reason = f"{who}: {part.get('reason', '')}" if who else part.get("reason", "")
            return _as_told(name, "bad", "down", name, reason)
    for _, part in each:
        if note := _note(name, part):
            return _as_told(name, "masked", "note", note)
    return PartTold(name=name, mark="whole", state="fine", said=f"traffic.fine_{name}")


def _as_told(name: str, mark: str, state: str, text: str, reason: str = "") -> PartTold:
    said, do = f"traffic.{state}_{text}", f"traffic.do_{text}"
    return PartTold(name=name, mark=mark, state=state, said=said, do=do, reason=reason)


def _note(name: str, part: Part) -> str:
    """What is the matter with a part that is ready; "" where nothing is."""
    notes = {
        "backend": part.get("breaker", "closed") != "closed" and "left_alone",
        "store": part.get("unwritten") and "unwritten",
        "audit": part.get("head") and "unrecorded",
        "limiter": part.get("degraded") and "degraded",
        "policy": _of_policy(part),
        "loop": part.get("placesPerKey") and "late",
    }
    return notes.get(name) or ""


def _of_policy(part: Part) -> str:
    states = {"stale": "stale", "held back": "held_back"}
    if part.get("waitsFor") == "cases":
        return "cases_wait"
    if found := states.get(part.get("state", "")):
        return found
    if part.get("behind"):
        return "behind"
    return "cases" if part.get("cases") else ""
