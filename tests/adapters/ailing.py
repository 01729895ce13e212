"""Ways in which a practice system fails its gateway: a file's, and any server's behind a port."""

import asyncio
import secrets
import sqlite3
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sqlalchemy.engine import make_url

from tests.streams import Streams

PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "firebird": 3050, "mssql": 1433}


class Ailing(Protocol):
    """What can be done to a practice system, and undone."""

    async def stop(self) -> None: ...

    async def slow(self) -> None: ...

    async def garble(self) -> None: ...

    async def mend(self) -> None: ...

    async def aclose(self) -> None: ...


class AilingFile:
    """An SQLite file: gone, locked by another program, or written over with junk."""

    def __init__(self, path: Path) -> None:
        self._path, self._kept = path, path.with_suffix(".kept")
        self._other: sqlite3.Connection | None = None

    async def stop(self) -> None:
        self._path.replace(self._kept)

    async def slow(self) -> None:
        self._other = sqlite3.connect(self._path, isolation_level=None)
        self._other.execute("BEGIN EXCLUSIVE")

    async def garble(self) -> None:
        self._kept.write_bytes(self._path.read_bytes())
        self._path.write_bytes(secrets.token_bytes(self._path.stat().st_size))

    async def mend(self) -> None:
        if self._other is not None:
            self._other.close()
            self._other = None
        if self._kept.exists():
            self._kept.replace(self._path)

    async def aclose(self) -> None:
        await self.mend()


class Mode(StrEnum):
    PASS = "pass"
    HOLD = "hold"  # what was asked gets through, and no answer comes back
    JUNK = "junk"  # what comes back is junk


class Relay:
    """A port through which a server is reached: cut off, silent, or talking junk."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._to = host, port
        self._mode = Mode.PASS
        self._streams = Streams(self._serve)

    @property
    def port(self) -> int:
        return self._streams.port

    async def open(self) -> None:
        await self._streams.open()

    async def stop(self) -> None:
        await self._streams.close()

    async def slow(self) -> None:
        self._mode = Mode.HOLD

    async def garble(self) -> None:
        self._mode = Mode.JUNK

    async def mend(self) -> None:
        """What was silent is cut off: half an answer would be no better."""
        await self.stop()
        self._mode = Mode.PASS
        await self.open()

    async def aclose(self) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._host, self._to)
        try:
            await asyncio.gather(
                self._pump(reader, back, answers=False), self._pump(there, writer, answers=True)
            )
        finally:
            back.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        try:
            while data := await reader.read(65_536):
                if answers and self._mode is Mode.HOLD:
                    continue
                junk = answers and self._mode is Mode.JUNK
                writer.write(secrets.token_bytes(len(data)) if junk else data)
                await writer.drain()
        finally:
            writer.close()


async def relayed(url: str) -> tuple[Relay, str]:
    """A port before a database's server, and the database's address there."""
    address = make_url(url)
    relay = Relay(address.host or "", address.port or PORTS[address.get_backend_name()])
    await relay.open()
    changed = address.set(host="127.0.0.1", port=relay.port)
    return relay, changed.render_as_string(hide_password=False)
