"""What a memory of a practice system's answers promises, whoever else remembers there."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Found(NamedTuple):
    """What is remembered, and which it is of all that was dropped: None where nothing is kept."""

    version: bytes | None
    data: bytes | None


class Memory(Protocol):
    """Remembers bytes. None of its verbs ever fails: what cannot be found is not remembered.

    What is kept under a mark is found until that mark is dropped; what was read before that and
    is kept after it is not found either, as it is kept with the version from before.
    """

    async def look(self, key: str, mark: str) -> Found:
        """What is remembered under the key, and the version of the mark that it stands under."""

    async def keep(self, key: str, mark: str, found: Found, seconds: float) -> None:
        """Remember the data for so long, as of that version."""

    async def drop(self, marks: Sequence[str]) -> None:
        """From now on nothing is found that is kept under these."""

    async def aclose(self) -> None:
        """Let go of it."""
