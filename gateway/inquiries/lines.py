"""The lines of a policy's text, counted as those are that its reader names."""

import re

_ends = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


def lines_of(content: bytes) -> list[str]:
    """Without their ends; what is no text is replaced."""
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return _ends.split(content.decode("utf-16" if utf16 else "utf-8-sig", "replace"))
