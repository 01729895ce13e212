"""Speaks to a port in bytes, as no well-behaved client would."""

import asyncio
from dataclasses import dataclass

from tests.partner import Partner


@dataclass(frozen=True)
class Heard:
    """All that came back within the time, and whether the other side closed."""

    data: bytes
    closed: bool

    @property
    def answers(self) -> list[tuple[int, dict[str, str], bytes]]:
        """Status, headers in lower case, body; the bodies are told apart by their length."""
        found, rest = [], self.data
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            first, *lines = head.decode("ascii").split("\r\n")
            headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
            length = int(headers.get("content-length", "0"))
            found.append((int(first.split()[1]), headers, rest[:length]))
            rest = rest[length:]
        return found

    @property
    def statuses(self) -> list[int]:
        return [status for status, _, _ in self.answers]


async def say(port: int, *pieces: bytes, seconds: float = 5.0, until: bytes = b"") -> Heard:
    """Send the pieces one after the other; hear until the end, `until`, or the time is up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard, closed = b"", False
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(seconds):
            while not (until and until in heard):
                data = await reader.read(1 << 16)
                heard += data
                if not data:
                    closed = True
                    break
    except TimeoutError:
        pass
    finally:
        writer.close()
    return Heard(heard, closed)


def head(partner: Partner, method: str, path: str, *lines: str, version: str = "1.1") -> bytes:
    """The head of a request with the partner's key."""
    first = f"{method} {path} HTTP/{version}"
    return "\r\n".join([first, "Host: x", f"X-API-Key: {partner.secret}", *lines, "", ""]).encode()
