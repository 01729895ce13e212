"""What senders of ambiguous requests send, and which messages each of it is.

A message is known by its X-Request-Id: `1`, `2` and so on, each behind the number of what it was
sent in, and `evil` for one that is hidden in another and must never be taken for a message.
"""

from dataclasses import dataclass

TYPES = b"/api/v1/appointments/types"
BOOK = b"/api/v1/appointments"
# As long as what takes their place, since lengths are told in what is sent.
SECRET = b"vk_" + b"@" * 48
NUMBER = b"####"
DUTIES = (b"Host: x", b"X-API-Key: " + SECRET)
JSON = b"Content-Type: application/json"
CHUNKED = b"Transfer-Encoding: chunked"


@dataclass(frozen=True)
class Sent:
    """Bytes on one connection.

    `noted` are the messages that the gateway takes for such when they come to it directly, and
    `unread` whether it then refuses the rest as no request. `plain` ones are without ambiguity:
    they are the same messages through every proxy.
    """

    name: str
    data: bytes
    noted: tuple[str, ...] = ()
    unread: bool = True
    plain: bool = False


def head(
    known: str, *lines: bytes, method: bytes = b"GET", path: bytes = TYPES, duties=DUTIES
) -> bytes:
    first = method + b" " + path + b" HTTP/1.1"
    name = b"X-Request-Id: " + NUMBER + b".message-" + known.encode()
    return b"\r\n".join([first, *duties, name, *lines, b"", b""])


def get(known: str, *lines: bytes) -> bytes:
    return head(known, *lines)


def post(known: str, *lines: bytes, body: bytes = b"") -> bytes:
    return head(known, JSON, *lines, method=b"POST", path=BOOK) + body


def length(body: bytes) -> bytes:
    return b"Content-Length: %d" % len(body)


CLOSE = b"Connection: close"
EVIL = get("evil")
LAST = get("2", CLOSE)
BOTH = ("1", "2")


def _ambiguous() -> list[Sent]:
    """Two ways to tell where the body ends: refused, and nothing after it is believed."""
    body = b"0\r\n\r\n" + EVIL
    inner = b"%x\r\n%b\r\n0\r\n\r\n" % (len(EVIL), EVIL)
    cl = length(body)
    odd = {
        "xchunked": b"Transfer-Encoding: xchunked",
        "blank-before-colon": b"Transfer-Encoding : chunked",
        "blank-first": b" Transfer-Encoding: chunked",
        "tab": b"Transfer-Encoding:\tchunked",
        "vertical-tab": b"Transfer-Encoding:\x0bchunked",
        "form-feed": b"Transfer-Encoding: chunked\x0c",
        "nul": b"Transfer-Encoding: chunked\0",
        "upper": b"TRANSFER-ENCODING: CHUNKED",
        "no-blank": b"Transfer-Encoding:chunked",
        "folded": b"Transfer-Encoding:\r\n chunked",
        "folded-away": b"X: y\r\n Transfer-Encoding: chunked",
        "bare-lf": b"X: y\nTransfer-Encoding: chunked",
        "bare-cr": b"X: y\rTransfer-Encoding: chunked",
        "quoted": b'Transfer-Encoding: "chunked"',
        "twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
        "twice-x-first": b"Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        "identity": b"Transfer-Encoding: identity",
        "list": b"Transfer-Encoding: chunked, identity",
        "comma": b"Transfer-Encoding: ,chunked",
        "empty": b"Transfer-Encoding:",
        "semicolon": b"Transfer-Encoding: chunked;q=1",
        "utf-8": b"Transfer-Encoding: chun\xc2\xadked",
    }
    found = [
        Sent("cl-te", post("1", cl, CHUNKED, body=body) + LAST),
        Sent("te-cl", post("1", CHUNKED, b"Content-Length: 4", body=inner) + LAST),
        Sent("cl-0-te", post("1", b"Content-Length: 0", CHUNKED, body=inner) + LAST),
    ]
    found += [
        Sent(f"cl-{name}", post("1", cl, line, body=body) + LAST) for name, line in odd.items()
    ]
    return found


def _lengths() -> list[Sent]:
    """Lengths that are none, or more than one."""
    lines = {
        "same-twice": b"Content-Length: 2\r\nContent-Length: 2",
        "differ": b"Content-Length: 2\r\nContent-Length: %d" % (2 + len(LAST)),
        "list": b"Content-Length: 2, 2",
        "plus": b"Content-Length: +2",
        "minus": b"Content-Length: -2",
        "hex": b"Content-Length: 0x2",
        "underscore": b"Content-Length: 0_2",
        "fraction": b"Content-Length: 2.0",
        "empty": b"Content-Length:",
        "words": b"Content-Length: two",
        "blank-inside": b"Content-Length: 2 2",
        "wraps-64": b"Content-Length: 18446744073709551618",
        "huge": b"Content-Length: " + b"9" * 400,
        "utf-8": "Content-Length: ٢".encode(),
    }
    found = [Sent(f"length-{n}", post("1", line, body=b"{}") + LAST) for n, line in lines.items()]
    beyond = post("1", b"Content-Length: 4294967298", body=b"{}") + LAST
    return [*found, Sent("length-wraps-32", beyond, ("1",), unread=False)]


def _chunks() -> list[Sent]:
    """Bodies in chunks that end otherwise than they should; an extension may not hide a message.

    The head is a message, and its answer says that the body cannot be read.
    """
    bodies = {
        "size-0x": b"0x2\r\n{}\r\n0\r\n\r\n",
        "size-plus": b"+2\r\n{}\r\n0\r\n\r\n",
        "size-minus": b"-2\r\n{}\r\n0\r\n\r\n",
        "size-empty": b"\r\n{}\r\n0\r\n\r\n",
        "size-underscore": b"0_2\r\n{}\r\n0\r\n\r\n",
        "size-wraps-64": b"10000000000000002\r\n{}\r\n0\r\n\r\n",
        "size-huge": b"f" * 300 + b"\r\n{}\r\n0\r\n\r\n",
        "size-blank-first": b" 2\r\n{}\r\n0\r\n\r\n",
        "size-bare-lf": b"2\n{}\r\n0\r\n\r\n",
        "size-bare-cr": b"2\r{}\r\n0\r\n\r\n",
        "no-end-of-chunk": b"2\r\n{}0\r\n\r\n",
        "too-long": b"2\r\n{}}\r\n0\r\n\r\n",
        "extension-bare-lf": b"2;\nxx\r\n{}\r\n0\r\n\r\n",
        "extension-bare-cr": b"2;\rxx\r\n{}\r\n0\r\n\r\n",
        "last-bare-lf": b"2\r\n{}\r\n0\n\n",
        "hidden-in-extension": b"2;" + EVIL + b"\r\n{}\r\n0\r\n\r\n",
    }
    sent = {name: post("1", CHUNKED, body=body) + LAST for name, body in bodies.items()}
    return [Sent(f"chunk-{name}", data, ("1",), unread=False) for name, data in sent.items()]


def _lines() -> list[Sent]:
    """Heads that are written otherwise than they should be."""
    whole = get("1", CLOSE)
    heads = {
        "bare-lf": whole.replace(b"\r\n", b"\n"),
        "bare-lf-at-end": whole[:-2] + b"\n",
        "bare-cr": whole.replace(b"\r\nX-Req", b"\rX-Req"),
        "folded": get("1", b"X: y\r\n z", CLOSE),
        "no-colon": get("1", b"X", CLOSE),
        "no-name": get("1", b": x", CLOSE),
        "blank-in-name": get("1", b"X Y: z", CLOSE),
        "blank-before-colon": get("1", b"X : z", CLOSE),
        "nul-in-value": get("1", b"X: y\0z", CLOSE),
        "nul-in-name": get("1", b"X\0: z", CLOSE),
        "control-in-value": get("1", b"X: y\x01z", CLOSE),
        "control-in-method": whole.replace(b"GET", b"G\x01T", 1),
        "tab": whole.replace(b"GET ", b"GET\t", 1),
        "blank-after-version": whole.replace(b"HTTP/1.1", b"HTTP/1.1 ", 1),
        "version-lower": whole.replace(b"HTTP/1.1", b"http/1.1", 1),
        "version-1.10": whole.replace(b"HTTP/1.1", b"HTTP/1.10", 1),
        "version-1.2": whole.replace(b"HTTP/1.1", b"HTTP/1.2", 1),
        "other-protocol": whole.replace(b"HTTP/1.1", b"ICY/1.1", 1),
        "preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + EVIL,
        "host-none": head("1", CLOSE, duties=DUTIES[1:]),
        "host-twice": get("1", b"Host: y", CLOSE),
        "host-twice-same": get("1", b"Host: x", CLOSE),
        "nul-in-path": whole.replace(TYPES, TYPES + b"\0"),
        "blank-in-path": whole.replace(TYPES, TYPES + b" x"),
        "method-unheard-of": whole.replace(b"GET", b"BREW", 1),
    }
    return [Sent(f"head-{name}", data) for name, data in heads.items()]


def _plain() -> list[Sent]:
    """Messages that are what they are, however strange."""
    body = b'{"clientId": "GET /evil HTTP/1.1"}'
    chunked = b"2\r\n{}\r\n0\r\n\r\n"
    hidden = b"0\r\n\r\n" + EVIL
    trailer = b"X-Request-Id: ####.message-evil\r\n\r\n"
    return [
        Sent("pipelined", b"".join(map(get, ("1", "2", "3", "4"))) + get("5", CLOSE),
             ("1", "2", "3", "4", "5"), plain=True),
        Sent("body-then-get", post("1", length(body), body=body) + LAST, BOTH, plain=True),
        Sent("message-in-a-body", post("1", length(EVIL), body=EVIL) + LAST, BOTH, plain=True),
        Sent("chunks-in-a-body", post("1", length(hidden), body=hidden) + LAST, BOTH, plain=True),
        Sent("get-with-a-body", get("1", length(EVIL)) + EVIL + LAST, BOTH, plain=True),
        Sent("head-then-get", head("1", method=b"HEAD") + LAST, BOTH, plain=True),
        Sent("options-then-get", head("1", method=b"OPTIONS") + LAST, BOTH, plain=True),
        Sent("empty-lines-first", b"\r\n" + LAST, ("2",), plain=True),
        Sent("chunked", post("1", CHUNKED, body=chunked), ("1",), plain=True),
        Sent("chunk-extension", post("1", CHUNKED, body=b'2;a=b;c="d"' + chunked[1:]), ("1",),
             plain=True),
        Sent("chunk-size-zeros", post("1", CHUNKED, body=b"0002\r\n{}\r\n000\r\n\r\n"), ("1",),
             plain=True),
        Sent("message-in-a-chunk", post("1", CHUNKED, body=b"%x\r\n%b\r\n0\r\n\r\n"
             % (len(EVIL), EVIL)), ("1",), plain=True),
        Sent("trailer", post("1", CHUNKED, body=chunked[:-2] + trailer) + LAST, ("1",), plain=False,
             unread=False),
        Sent("absolute", head("1", CLOSE, path=b"http://x" + TYPES), ("1",), plain=True),
        Sent("method-unknown", head("1", CLOSE, method=b"PROPFIND"), ("1",), plain=True),
    ]  # fmt: skip


def _odd() -> list[Sent]:
    """What proxies answer themselves or rewrite; the gateway counts it rightly all the same."""
    whole = get("1", CLOSE)
    old = get("1", b"Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")
    old_chunks = post("1", CHUNKED, b"Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")
    upgrade = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")
    socket = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13")
    expects = (b"Content-Length: 2", b"Expect: 100-continue")
    return [
        Sent("http-1.0-kept", old + LAST, BOTH, unread=False),
        Sent("http-1.0-chunks", old_chunks + b"2\r\n{}\r\n0\r\n\r\n" + LAST, ("1",), unread=False),
        Sent("upgrade-h2c", get("1", *upgrade) + LAST, ("1",), unread=False),
        Sent("upgrade-websocket", get("1", *socket) + LAST, ("1",), unread=False),
        Sent("connect", head("1", method=b"CONNECT", path=b"x:443") + LAST, ("1",), unread=False),
        Sent("trace", head("1", CLOSE, method=b"TRACE"), ("1",), unread=False),
        Sent("expect", post("1", *expects, body=b"{}") + LAST, BOTH, unread=False),
        Sent("expect-other", post("1", b"Content-Length: 2", b"Expect: x", body=b"{}") + LAST,
             ("1",), unread=False),
        Sent("blanks-before-target", whole.replace(b"GET ", b"GET  ", 1)),
        Sent("blanks-after-target", whole.replace(b" HTTP/", b"  HTTP/", 1)),
        Sent("blanks-in-a-later-head", get("1") + LAST.replace(b"GET ", b"GET  ", 1), ("1",)),
        Sent("host-list", whole.replace(b"Host: x", b"Host: x, y"), ("1",), unread=False),
        Sent("version-2.0", whole.replace(b"HTTP/1.1", b"HTTP/2.0", 1), ("1",), unread=False),
        Sent("version-none", whole.replace(b" HTTP/1.1", b"", 1), ("1",), unread=False),
        Sent("asterisk", head("1", CLOSE, method=b"OPTIONS", path=b"*"), ("1",), unread=False),
        Sent("elsewhere", head("1", CLOSE, path=b"http://y" + TYPES), ("1",), unread=False),
        Sent("key-hidden", head("1", CLOSE, b"X_API_Key: " + SECRET, duties=DUTIES[:1]), ("1",),
             unread=False),
        Sent("te-underscore", post("1", length(EVIL), b"Transfer_Encoding: chunked", body=EVIL)
             + LAST, BOTH, unread=False),
    ]  # fmt: skip


ALL = (*_ambiguous(), *_lengths(), *_chunks(), *_lines(), *_plain(), *_odd())
