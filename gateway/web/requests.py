"""A request as it came: which operation it names, whether we take it, its name and its body."""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Sequence

from aiohttp import HttpVersion11, web
from multidict import istr

from gateway.contract import errors
from gateway.contract.operations import BASE_PATH, Operation
from gateway.keys.secret import FORM
from gateway.pipeline.call import Target
from gateway.web.addresses import check_addressed

# Ready for look-up, so that no name is folded anew for each request.
EXPECT = istr("Expect")
TRANSFER_ENCODING = istr("Transfer-Encoding")
UPGRADE = istr("Upgrade")
# Bytes that a body may have.
LARGEST = 64 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# A partner who takes its own key for a name would have it stand in every log.
_request_id = re.compile(rf"(?!.*{FORM})[A-Za-z0-9._-]{{8,64}}").fullmatch
_VERSIONS = frozenset({(1, 0), (1, 1)})


class Routes:
    """The paths below /api/v1; ValueError for an operation whose path has not that form.

    Paths are matched as they came, segment by segment, undecoded. A path that is written out wins
    over one that ends in an id; an id is not looked at here.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._written: dict[str, dict[str, Operation]] = {}
        self._with_id: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            before, _, last = operation.path.rpartition("/")
            if "{" in before:
                raise ValueError(f"{operation.id}: only the end of a path may be an id")
            if last.startswith("{"):
                methods = self._with_id.setdefault(BASE_PATH + before, {})
            else:
                methods = self._written.setdefault(BASE_PATH + operation.path, {})
            if operation.method in methods:
                raise ValueError(f"{operation.id}: another operation has this path and method")
            methods[operation.method] = operation
            if operation.method == "GET":
                methods["HEAD"] = operation

    def match(self, method: str, path: str) -> Target | errors.GatewayError:
        """The operation, or the refusal: NotFound, MethodNotAllowed."""
        methods, last = self._written.get(path), ""
        if methods is None:
            before, _, last = path.rpartition("/")
            methods = self._with_id.get(before) if last else None
        if methods is None:
            return errors.NotFound()
        operation = methods.get(method)
        return Target(operation, last) if operation else errors.MethodNotAllowed(", ".join(methods))


def target_of(request: web.BaseRequest) -> tuple[str, str]:
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
    return UPGRADE in request.headers or TRANSFER_ENCODING in request.headers


def refuse_oddities(request: web.BaseRequest) -> None:
    """What is no request that we take, whoever sends it."""
    headers = request.headers
    version = request.version
    if version is not HttpVersion11 and version not in _VERSIONS:
        raise errors.NotARequest
    check_addressed(request)
    if TRANSFER_ENCODING in headers:
        if version.minor == 0:
            raise errors.NotARequest("Transfer-Encoding", "does not exist in HTTP/1.0")
        if [text.strip().lower() for text in headers.getall(TRANSFER_ENCODING)] != ["chunked"]:
            raise errors.NotARequest("Transfer-Encoding", "must be chunked and nothing else")
    if EXPECT in headers and {text.strip().lower() for text in headers.getall(EXPECT)} != {
        "100-continue"
    }:
        raise errors.ExpectationFailed
    if request.method == "CONNECT":
        raise errors.MethodNotAllowed("GET, HEAD, POST")


class Body:
    """The upload of one request; `seconds` is how long its body may take to arrive."""

    __slots__ = ("_request", "_seconds")

    def __init__(self, request: web.BaseRequest, seconds: float) -> None:
        self._request = request
        self._seconds = seconds

    def size(self) -> int:
        announced = self._request.content_length
        return LARGEST if announced is None else min(announced, LARGEST)

    def idempotency_keys(self) -> Sequence[str]:
        return self._request.headers.getall("Idempotency-Key", ())

    async def read(self) -> bytes:
        request = self._request
        _check_type(request)
        if (request.content_length or 0) > LARGEST:
            raise errors.BodyTooLarge
        transport = request.transport
        if EXPECT in request.headers and request.version.minor > 0 and transport is not None:
            transport.write(_CONTINUE)
        body = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                while chunk := await request.content.readany():
                    body += chunk
                    if len(body) > LARGEST:
                        raise errors.BodyTooLarge
        except TimeoutError as error:
            raise errors.BodyTooSlow from error
        except (web.RequestPayloadError, ConnectionError) as error:
            raise errors.NotARequest from error
        return bytes(body)


def _check_type(request: web.BaseRequest) -> None:
    """NotJson unless the headers say plain JSON in UTF-8."""
    kinds = request.headers.getall("Content-Type", [])
    codings = request.headers.getall("Content-Encoding", [])
    kind, *parameters = kinds[0].lower().split(";") if len(kinds) == 1 else [""]
    if kind.strip() != "application/json":
        raise errors.NotJson
    pairs = (parameter.partition("=") for parameter in parameters)
    charsets = [value.strip(' \t"') for name, _, value in pairs if name.strip() == "charset"]
    if any(charset not in {"utf-8", "utf8"} for charset in charsets):
        raise errors.NotUtf8
    if any(coding.strip().lower() != "identity" for coding in codings):
        raise errors.Encoded
