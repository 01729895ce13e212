"""Files that browsers may have packed."""

import gzip
from collections.abc import Iterable


def pack(body: bytes) -> bytes:
    """The same by gzip; always the same of the same."""
    return gzip.compress(body, mtime=0)


def accepts_gzip(values: Iterable[str]) -> bool:
    """Whether headers Accept-Encoding with these values want gzip."""
    for each in ",".join(values).lower().split(","):
        name, _, rest = each.partition(";")
        if name.strip() in {"gzip", "x-gzip"}:
            quality = rest.strip().replace(" ", "").removeprefix("q=")
            return quality.strip("0.") != "" or quality == ""
    return False
