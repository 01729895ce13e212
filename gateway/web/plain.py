"""Reads the heads of plain requests: of GETs without a body that say nothing unusual.

What it reads is read by aiohttp's parser in the same way. Whatever is unusual or in doubt is not
read here, and left to that parser.
"""

import re
import string
from typing import NamedTuple

from gateway.keys.secret import digest
from gateway.web.addresses import host_of

# The most bytes of a request line that the parser takes.
LONGEST_LINE = 4096
# The most bytes of the lines behind the first one that are read here.
LONGEST_BLOCK = 4096
_START, _VERSION = b"GET /", b" HTTP/1.1\r\n"
_OF_TARGETS = string.ascii_letters.encode() + string.digits.encode() + b"/_.~%&=+,:@!$'()*;?-"
_lines = re.compile(rb"(?:[A-Za-z-]+: [!-~](?:[ -~]*[!-~])?\r\n)+\r\n").fullmatch
# What counts of a head, and what the gateway does not look at.
_NAMES = frozenset(
    "host x-api-key x-request-id x-forwarded-for traceparent connection"  # noqa: SIM905 - a list would be long
    " accept accept-encoding accept-language cache-control cookie dnt forwarded from origin pragma"
    " priority referer sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode"
    " sec-fetch-site sec-fetch-user tracestate upgrade-insecure-requests user-agent via"
    " x-forwarded-host x-forwarded-port x-forwarded-proto x-real-ip".split()
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
    """Returns the head of a plain request with one key, from the lines behind the first.

    A name that comes twice is not plain: the parser refuses that of some.
    """
    if len(block) > LONGEST_BLOCK or _lines(block) is None:
        return None
    lines = str(block[:-4], "ascii").split("\r\n")
    values: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        values[name.lower()] = value
    if len(values) < len(lines) or not _NAMES.issuperset(values):
        return None
    secret, host = values.get("x-api-key"), values.get("host", "")
    closes = values.get("connection", "keep-alive").lower() != "keep-alive"
    if secret is None or closes or not host_of(host):
        return None
    return Head(
        block,
        digest(secret),
        values.get("x-request-id"),
        values.get("x-forwarded-for"),
        values.get("traceparent"),
    )
