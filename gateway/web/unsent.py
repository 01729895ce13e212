"""What readers have not taken yet of their answers: bounded in time, and in bytes over all."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

# A reader who takes longer than this for what is left of an answer is cut off.
READER_PATIENCE = 8.0
# Bytes that answers of one process may take which wait for their readers.
MOST_UNSENT = 16 * 1024 * 1024

# Why a connection was closed.
READER = "reader"


class Reader(Protocol):
    """A connection, as far as somebody reads from it."""

    @property
    def is_known(self) -> bool:
        """Whether a key that counts has come of it."""

    def unsent_bytes(self) -> int:
        """How much of what was written has not been taken yet."""

    async def drained(self) -> None:
        """Wait until all has; ConnectionError where the line is cut."""

    def cut_off(self) -> None:
        """Close it at once."""


class Unsent:
    """The answers of one process that wait for their readers; too many cut off who holds most.

    That is one with a key that counts only where such readers together hold more than the others.

    `told` hears of each that was cut off.
    """

    def __init__(
        self,
        most: int = MOST_UNSENT,
        patience: float = READER_PATIENCE,
        told: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.bytes = 0
        self.patience = patience
        self._most = most
        self._told = told
        self._waiting: OrderedDict[Reader, int] = OrderedDict()

    async def sent(self, reader: Reader) -> None:
        """Wait until all has been taken, or the patience ends; ConnectionError where it is cut."""
        self._note(reader)
        try:
            async with asyncio.timeout(self.patience):
                await reader.drained()
        except TimeoutError:
            self._cut_off(reader)
        finally:
            self._forget(reader)

    def _note(self, reader: Reader) -> None:
        size = reader.unsent_bytes()
        self._waiting[reader] = size
        self.bytes += size
        if self.bytes > self._most:
            self._weigh()
        while self.bytes > self._most:
            greediest = self._greediest()
            self._forget(greediest)
            self._cut_off(greediest)

    def _greediest(self) -> Reader:
        """Who holds the most: of those with a key, or of those without, who together hold more."""
        known = {each for each in self._waiting if each.is_known}
        is_known = 2 * sum(self._waiting[each] for each in known) > self.bytes
        among = (each for each in self._waiting if (each in known) == is_known)
        return max(among, key=self._waiting.__getitem__)

    def _weigh(self) -> None:
        """How much is left by now of what waits."""
        for each in self._waiting:
            self._waiting[each] = each.unsent_bytes()
        self.bytes = sum(self._waiting.values())

    def _cut_off(self, reader: Reader) -> None:
        self._told(READER)
        reader.cut_off()

    def _forget(self, reader: Reader) -> None:
        self.bytes -= self._waiting.pop(reader, 0)
