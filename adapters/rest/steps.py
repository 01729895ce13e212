"""Makes the calls of a booking in order, keeps what they answer, and takes them back."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from adapters import base
from adapters.base import AdapterError, BackendUnavailable, OutcomeUnknown
from adapters.mapped.session import BookingProgress
from adapters.mapping.checker import DRAFT
from adapters.mapping.models import BookingMap, StepKept, StepMap
from adapters.mapping.paths import Path, value_at
from adapters.rest.backend import TO_A_STEP, TO_A_WRITE, Backend
from adapters.rest.records import raw_value
from adapters.rest.requests import Endpoint, Templates, TemplateValues

# A step of a booking is sent only while at least so many seconds are left.
LEAST_PATIENCE = 0.5
# What a dry booking takes for a value that an answer would have.
MADE_UP = "0"


class StepCall(NamedTuple):
    """A step of a booking, its call, what finds what is kept of the answer, and what undoes it."""

    map: StepMap
    call: Endpoint
    keep: Mapping[str, Path]
    undo: Endpoint | None


class Done(NamedTuple):
    """A step that has written, the values that it was made with, and what was kept of it."""

    step: StepCall
    values: TemplateValues
    kept: Mapping[str, Any]


def step_calls(booking: BookingMap, templates: Templates) -> list[StepCall]:
    return [
        StepCall(
            step,
            templates.call(step, DRAFT),
            {name: _found(kept) for name, kept in step.keep.items()},
            None if step.undo is None else templates.call(step.undo, DRAFT),
        )
        for step in booking.steps
    ]


def _found(kept: StepKept) -> Path:
    """Returns what finds the value in an answer: in its JSON, or in a header."""
    if kept.header is None:
        find = raw_value(kept)
        return lambda answer: find(answer.data)
    name = kept.header.lower().encode()
    value = raw_value(kept.model_copy(update={"source": "@"}))
    return lambda answer: value((answer.headers.get(name) or b"").decode(errors="replace") or None)


class NothingSent(Exception):
    """Raised at the end of a dry booking, whose calls were put together and not sent."""


class StepsTaken:
    """The steps of one booking, which has until `deadline`, by the event loop's clock.

    Where it is `dry`, only calls that read are sent.
    """

    def __init__(
        self,
        steps: Sequence[StepCall],
        backend: Backend,
        deadline: float,
        progress: BookingProgress,
        *,
        dry: bool = False,
    ) -> None:
        self._steps, self._backend, self._dry = steps, backend, dry
        self._deadline, self._progress = deadline, progress
        self.values = TemplateValues()
        self._done: list[Done] = []

    @property
    def has_written(self) -> bool:
        return bool(self._done)

    @property
    def can_be_undone(self) -> bool:
        """Whether each step that has written says how it is taken back."""
        return all(done.step.undo is not None for done in self._done)

    async def take(self, kind: str) -> None:
        """Makes every call that is for this kind of time: `time` or `slot`.

        Raises OutcomeUnknown where it is not known what came of a call.
        """
        for number, step, values, kept in self._calls_of(kind):
            if _happens(step.map, values):
                self._progress.place = ("booking", "steps", number)
                self._progress.taken.add(number)
                await self._take(step, values, kept)

    def _calls_of(
        self, kind: str
    ) -> Iterator[tuple[int, StepCall, TemplateValues, dict[str, Any]]]:
        """Yields the calls for this kind of time: with their values, and where what they keep goes.

        Some are made for each slot row, and keep their values for it alone.
        """
        values = self.values
        for number, step in enumerate(self._steps):
            if step.map.for_ not in (None, kind):
                continue
            if step.map.each is None:
                yield number, step, values, self._progress.made
            else:
                for slot, made in enumerate(values.made_of):
                    yield number, step, values.of_slot(slot), made

    async def _take(self, step: StepCall, values: TemplateValues, kept: dict[str, Any]) -> None:
        """Makes the call of a step, and keeps what later steps need."""
        request, left = step.call.request(values), self._left
        if left < LEAST_PATIENCE:
            raise BackendUnavailable("there was no time left to book in")
        if step.map.writes and self._dry:
            kept |= {name: MADE_UP for name, value in step.map.keep.items() if not value.optional}
            return
        if not step.map.writes:
            answer = await self._backend.read(request, TO_A_STEP)
        else:
            bare = all(value.header is not None for value in step.map.keep.values())
            answer = await self._backend.write(request, left, bare=bare)
            self._done.append(Done(step, values, kept))
        for name, find in step.keep.items():
            value = _kept(step, step.map.keep[name], value_at(find, answer))
            if value is not None:
                kept[name] = value

    @property
    def _left(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()

    def undo_of(self, name: str) -> Endpoint | None:
        """Returns the call that takes back the last step that kept a value."""
        undos = [done.step.undo for done in self._done if name in done.step.keep]
        return undos[-1] if undos else None

    def forget(self, name: str) -> None:
        """Forgets the steps that kept a value, as they are taken back."""
        self._done = [done for done in self._done if name not in done.step.keep]

    async def undo(self) -> None:
        """Takes back what can be, the last step first. Raises OutcomeUnknown where that fails."""
        while self._done:
            step, values, kept = self._done.pop()
            if step.undo is None:
                continue
            made = {**self._progress.made, **kept}
            try:
                request = step.undo.request(values._replace(made=made))
                await self._backend.write(request, max(LEAST_PATIENCE, self._left), bare=True)
            except AdapterError as error:
                text = f"a step of a booking could not be taken back: {error}"
                raise OutcomeUnknown(text) from error


def _kept(step: StepCall, wanted: StepKept, value: Any) -> Any:
    """Returns what is kept of an answer, if anything; raises what it means that it is missing.

    An empty text is as good as none.
    """
    value = None if value == "" else value
    is_plain = value is not None and not isinstance(value, dict | list | bool)
    if is_plain or (value is None and wanted.optional):
        return value
    text = f"{step.call.label}: the answer lacks what booking.steps keeps of it"
    if wanted.missing is not None:
        raise TO_A_WRITE[wanted.missing](f"{text}, which means {wanted.missing}")
    raise (OutcomeUnknown if step.map.writes else base.BackendNonsense)(text)


def _happens(step: StepMap, values: TemplateValues) -> bool:
    """Returns whether the step's condition holds."""
    if step.if_ is None:
        return True
    if step.if_.made is not None:
        return step.if_.made in values.made
    return values.given[step.if_.draft or ""] is not None
