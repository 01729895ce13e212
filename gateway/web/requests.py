"""A request as it came: what it asks for, its name, and whether it is one that we take."""

import os
import re
from collections.abc import Iterator

from aiohttp import HttpVersion11, web
from multidict import istr

from gateway.contract.errors import ExpectationFailed, MethodNotAllowed, NotARequest
from gateway.keys.secret import FORM
from gateway.web.body import EXPECT
from gateway.web.hosts import check_addressed

TRANSFER_ENCODING = istr("Transfer-Encoding")
UPGRADE = istr("Upgrade")
# A partner who takes its own key for a name would have it stand in every log.
_request_id = re.compile(rf"(?!.*{FORM})[A-Za-z0-9._-]{{8,64}}").fullmatch
_VERSIONS = frozenset({(1, 0), (1, 1)})


def asked(request: web.BaseRequest) -> tuple[str, str]:
    """The path as it came, undecoded, and the raw query; of an address, only these parts count."""
    raw = request.raw_path
    if not raw.startswith("/"):
        url = request.rel_url
        return url.raw_path, url.raw_query_string
    path, _, query = raw.partition("?")
    return path, query


class RequestIds:
    """Names each request; random digits are drawn many at a time, since asking for them costs."""

    def __init__(self) -> None:
        self._new = self._drawn()

    def __call__(self, given: str | None) -> str:
        """The caller's own where it has the right form, else a new one."""
        if given is not None and _request_id(given):
            return given
        return next(self._new)

    def _drawn(self) -> Iterator[str]:
        while True:
            digits = os.urandom(16 * 256).hex()
            for start in range(0, len(digits), 32):
                yield digits[start : start + 32]


def must_close(request: web.BaseRequest) -> bool:
    """Whether nothing may follow on the connection.

    The parser takes the trailers of a chunked body for headers of the request that comes next.
    """
    headers = request.headers
    return UPGRADE in headers or TRANSFER_ENCODING in headers


def refuse_oddities(request: web.BaseRequest) -> None:
    """What is no request that we take, whoever sends it."""
    headers = request.headers
    version = request.version
    if version is not HttpVersion11 and version not in _VERSIONS:
        raise NotARequest
    check_addressed(request)
    if TRANSFER_ENCODING in headers:
        if request.version.minor == 0:
            raise NotARequest("Transfer-Encoding", "does not exist in HTTP/1.0")
        if [each.strip().lower() for each in headers.getall(TRANSFER_ENCODING)] != ["chunked"]:
            raise NotARequest("Transfer-Encoding", "must be chunked and nothing else")
    if EXPECT in headers:
        wanted = {each.strip().lower() for each in headers.getall(EXPECT)}
        if wanted != {"100-continue"}:
            raise ExpectationFailed
    if request.method == "CONNECT":
        raise MethodNotAllowed("GET, HEAD, POST")
