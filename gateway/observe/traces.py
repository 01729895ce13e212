"""The trace that a call is part of, as partners name it in W3C's `traceparent`."""

import re
from collections.abc import Sequence

from adapters.asking import Asking

# A later version may say more behind these four parts; the version ff is none.
_form = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
).fullmatch
_LONGEST = 512


def read(given: Sequence[str]) -> str:
    """The header in our own spelling; "" where it is absent, doubled or malformed."""
    if len(given) != 1 or len(given[0]) > _LONGEST:
        return ""
    found = _form(given[0])
    if found is None or (found[4] is not None and given[0].startswith("00")):
        return ""
    return f"00-{found[1]}-{found[2]}-{found[3]}"


class Traces:
    """No traces of our own: what a partner sends reaches the practice system."""

    def begin(self, operation: str, given: Sequence[str]) -> Asking:
        """What is noted of a call; `given` is its `traceparent`, every occurrence."""
        return Asking(read(given)) if given else Asking()

    async def aclose(self) -> None:
        """Send what waits, within two seconds."""
