"""Reads the heads of plain requests: of GETs without a body that say nothing unusual.

What it reads is read by aiohttp's parser in the same way. Whatever is unusual or in doubt is not
read here, and left to that parser.
"""

import re
import string
from typing import NamedTuple

from gateway.keys.secret import digest
from gateway.web.addresses import host_of

# The most bytes of a line of a head, and lines, that the parser takes.
LONGEST_LINE, MOST_LINES = 4096, 64
# The most bytes of the lines behind the first one that are read here.
LONGEST_BLOCK = 4096
_START, _VERSION = b"GET /", b" HTTP/1.1\r\n"
_OF_TARGETS = string.ascii_letters.encode() + string.digits.encode() + b"/_.~%&=+,:@!$'()*;?-"
_lines = re.compile(rb"(?:[A-Za-z-]+: [!-~](?:[ -~]*[!-~])?\r\n)+\r\n").fullmatch
# What is read, as the parser's callers name it, and what the gateway does not look at.
_READ = {
    b"host": "host",
    b"x-api-key": "secret",
    b"x-request-id": "request_id",
    b"x-forwarded-for": "forwarded",
    b"traceparent": "traceparent",
    b"connection": "connection",
}
_IGNORED = frozenset(
    b"accept accept-encoding accept-language cache-control cookie dnt forwarded from origin pragma"
    b" priority referer sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode"
    b" sec-fetch-site sec-fetch-user tracestate upgrade-insecure-requests user-agent via"
    b" x-forwarded-host x-forwarded-port x-forwarded-proto x-real-ip".split()
)


class Head(NamedTuple):
    """The lines behind the first one, as they came, and the values of those that count.

    `digest` is that of the one secret.
    """

    block: bytes
    digest: bytes
    request_id: str | None = None
    forwarded: str | None = None
    traceparent: str | None = None


def target_in(data: bytes) -> tuple[str, int] | None:
    """Returns a request's target, and where its first line ends; None for another kind of line."""
    end = data.find(_VERSION, 4, LONGEST_LINE + 2)
    target = data[4:end]
    if end < 0 or not data.startswith(_START) or target.translate(None, _OF_TARGETS):
        return None
    return str(target, "ascii"), end + len(_VERSION)


def head_of(block: bytes) -> Head | None:
    """Returns the head of a plain request with one key, from the lines behind the first."""
    if len(block) > LONGEST_BLOCK or _lines(block) is None:
        return None
    lines = block[:-4].split(b"\r\n")
    values: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(b": ")
        known = _READ.get(name.lower())
        if known is None:
            if name.lower() in _IGNORED:
                continue
            return None
        if known in values:
            return None
        values[known] = value.strip(b" ").decode("ascii")
    connection = values.pop("connection", "keep-alive")
    if len(lines) > MOST_LINES or connection.lower() != "keep-alive":
        return None
    if "secret" not in values or not host_of(values.pop("host", "")):
        return None
    return Head(block, digest(values.pop("secret")), **values)
