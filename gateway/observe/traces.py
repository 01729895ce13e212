"""Reads the trace that a call is part of from its `traceparent` header (W3C)."""

import re
from collections.abc import Sequence

from adapters.call_notes import CallNotes

# A later version may add parts behind these four; version ff is not valid.
_form = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
).fullmatch
_LONGEST = 512


def read(given: Sequence[str]) -> str:
    """Returns the header in our own spelling; "" where it is absent, doubled or malformed."""
    if len(given) != 1 or len(given[0]) > _LONGEST:
        return ""
    match = _form(given[0])
    if match is None or (match[4] is not None and given[0].startswith("00")):
        return ""
    return f"00-{match[1]}-{match[2]}-{match[3]}"


class Traces:
    """No spans of our own: a partner's header is passed on to the practice system."""

    def begin(self, operation: str, given: Sequence[str]) -> CallNotes:
        """Returns what is noted of a call; `given` are all its `traceparent` headers."""
        return CallNotes(read(given)) if given else CallNotes()

    async def aclose(self) -> None:
        """Sends what waits, within two seconds."""
