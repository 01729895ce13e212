"""Looks ids up in a table: one question at a time, about all the ids that wait by then.

Who guesses ids finds none. After a question that found none the next one waits a little, so that
guesses cost few questions, however many there are.
"""

import asyncio
import time
from collections.abc import Callable, Mapping

from adapters.base import IdTable

# Seconds between a question that found nothing and the next one.
APART = 0.05
# How many ids one question is about.
AT_ONCE = 1_000


class Lookups:
    """The look-ups of the ids of one resource."""

    def __init__(
        self, resource: str, table: IdTable, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._resource, self._table, self._clock = resource, table, clock
        self._waiting: dict[str, asyncio.Future[str | None]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._next_at = 0.0

    async def find(self, public_id: str) -> str | None:
        """Returns the key that is kept by the time of the call; raises what the table raises."""
        answer = self._waiting.get(public_id)
        if answer is None:
            answer = asyncio.get_running_loop().create_future()
            answer.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            self._waiting[public_id] = answer
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(answer)

    async def _ask(self) -> None:
        """Asks until nobody waits any more."""
        try:
            while self._waiting:
                await asyncio.sleep(max(0.0, self._next_at - self._clock()))
                ids = list(self._waiting)[:AT_ONCE]
                answers = {public_id: self._waiting.pop(public_id) for public_id in ids}
                if not await self._answer(answers):
                    self._next_at = self._clock() + APART
        finally:
            while self._waiting:
                self._waiting.popitem()[1].cancel()

    async def _answer(self, answers: Mapping[str, asyncio.Future[str | None]]) -> bool:
        """Answers who waits for these ids; returns whether any was found."""
        found: Mapping[str, str] = {}
        try:
            found = await self._table.find(self._resource, list(answers))
        except Exception as error:  # noqa: BLE001 - who waits is told, whatever it is
            for answer in answers.values():
                answer.set_exception(error)
        except asyncio.CancelledError:
            for answer in answers.values():
                answer.cancel()
            raise
        else:
            for public_id, answer in answers.items():
                answer.set_result(found.get(public_id))
        return bool(found)
