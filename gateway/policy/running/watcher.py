"""Who is told what becomes of the policy while it runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol


class Watcher(Protocol):
    """Who is told what becomes of the policy."""

    def loaded(self, old: str, new: str, at: datetime) -> None:
        """The policy with the hash `new` runs from now on, after the one with the hash `old`."""

    def refused(self, problems: Sequence[str], running: str, file: str) -> None:
        """The file, with the hash `file`, cannot be taken; what runs goes on."""

    def held(self, waiting: str, running: str, waits_for: str) -> None:
        """What the file shows more waits, for its CASES or for an APPROVAL."""

    def cases(self, failing: Sequence[str], running: str) -> None:
        """The cases of the file that fail, or what is wrong with theirs; none: they pass again."""

    def unchanged(self, running: str) -> None:
        """The file is what runs: once more, or as somebody asked for it to be looked at."""

    def failed(self, error: Exception, said: str) -> None:
        """A fault of ours; `said` may stand in a log."""

    def untold(self, error: Exception, said: str) -> None:
        """The file is followed, but the store can be neither told nor asked."""
