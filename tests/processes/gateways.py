"""A gateway of several processes, started as an operator would, and partners that count losses."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

from tests.command import Forked, clinic_gateway, logging_to
from tests.waiting import GENEROUS

BEGIN_IN = 60.0
Process = subprocess.Popen[bytes] | Forked


class Several:
    """`clinic-gateway serve` with several workers, in a folder with a `gateway.yaml`.

    `spoilt` is Python that runs before it, `environ` what it is told beside. A node of several has
    its `config` elsewhere, as it is. Another `tree` of the project takes a Python of its own.
    """

    def __init__(
        self,
        folder: Path,
        *,
        lines: Sequence[str] = ("workers: 2",),
        spoilt: str = "",
        config: Path | None = None,
        environ: Mapping[str, str] | None = None,
        tree: Path | None = None,
    ) -> None:
        self.folder = folder
        self.config = config or folder / "gateway.yaml"
        if config is None:
            text = self.config.read_text() + "".join(f"{each}\n" for each in lines)
            self.config.write_text(text)
        self._forgotten = 0
        said, words = folder / "stderr.txt", ("serve", "--config", str(self.config))
        said.write_bytes(b"")
        self.process: Process = (
            _importing(tree, said, words)
            if tree
            else logging_to(said, *words, environ=environ, spoilt=spoilt)
        )
        try:
            began = self.event("serving", within=BEGIN_IN)
        except BaseException:
            self.process.kill()
            raise
        self.port, self.operations_port = began["port"], began["operations_port"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except (subprocess.TimeoutExpired, TimeoutError):
                self.process.kill()
                self.process.wait(5)
        self.process.__exit__(None, None, None)

    def said(self) -> list[dict[str, Any]]:
        """Every event since the last `forget`.

        But for a line that a kill has torn, or that is just being written; one that is no event
        at all fails.
        """
        events = []
        for line in self._lines():
            try:
                events.append(json.loads(line))
            except ValueError:
                if not line.startswith(b"{"):
                    raise
        return events

    def forget(self) -> None:
        """What was said until now is no news any more."""
        self._forgotten += len(self._lines())

    def _lines(self) -> list[bytes]:
        return (self.folder / "stderr.txt").read_bytes().splitlines()[self._forgotten :]

    def event(self, name: str, *, within: float = GENEROUS, times: int = 1) -> dict[str, Any]:
        """The event with that name, once it is said so many times."""

        def found() -> dict[str, Any] | None:
            alike = [each for each in self.said() if each["event"] == name]
            return alike[times - 1] if len(alike) >= times else None

        try:
            return eventually(found, within=within, alive=self.process)
        except AssertionError as error:
            raise AssertionError((self.folder / "stderr.txt").read_text()) from error

    def get(self, path: str) -> tuple[int, Any]:
        """What the operations listener answers."""
        return get(self.operations_port, path)

    def ready(self) -> dict[str, Any]:
        """The readiness, ready or not."""
        report: dict[str, Any] = self.get("/readyz")[1]
        return report

    def workers(self) -> dict[int, int]:
        """Worker number -> process id, of those that answer."""
        each = self.ready()["parts"]["workers"].get("each", ())
        return {told["worker"]: told["pid"] for told in each}

    def worker(self, number: int) -> int:
        """Its process id, once it answers."""
        pid: int = eventually(lambda: self.workers().get(number))
        return pid

    def children(self) -> set[int]:
        """The process ids of all that the parent has forked."""
        with suppress(FileNotFoundError):
            text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            return set(map(int, text.split()))
        return set()

    def operations(self) -> int:
        """The operations process's id, once all others are workers that answer."""
        found: set[int] = eventually(
            lambda: len(rest := self.children() - set(self.workers().values())) == 1 and rest
        )
        return found.pop()

    def mint(self, *words: str) -> tuple[str, str]:
        """A new key with every permission that reads and books: its id and its secret."""
        permissions = ("CLIENT_READ", "APPOINTMENT_READ", "APPOINTMENT_CREATE", "PATIENT_READ")
        wanted = [word for each in permissions for word in ("--permission", each)]
        made = self.command("keys", "create", "--name", "x", *wanted, "--level", "FULL", *words)
        return made["id"], made["key"]

    def command(self, *words: str) -> Any:
        """What a command prints as JSON."""
        done = clinic_gateway(*words, "--json", "--config", str(self.config))
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def end(self, number: int = signal.SIGTERM, *, within: float = 20.0) -> int:
        """The exit code."""
        self.process.send_signal(number)
        return self.process.wait(within)


def of_copy(tree: Path) -> dict[str, str]:
    """What has a Python import the copy: no folder that it is started in comes before."""
    return {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}


def _importing(tree: Path, said: Path, words: Sequence[str]) -> subprocess.Popen[bytes]:
    with said.open("wb") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway", *words],
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            env=os.environ | of_copy(tree),
        )


def eventually(
    found: Callable[[], Any], *, within: float = GENEROUS, alive: Process | None = None
) -> Any:
    """What it gives once that is something; AssertionError where it does not in time."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        if value := found():
            return value
        if alive is not None and alive.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError("it did not come")


def get(port: int, path: str, secret: str | None = None) -> tuple[int, Any]:
    """Status and data of one call on a connection of its own."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={} if secret is None else {"X-API-Key": secret})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    is_json = answer.headers["Content-Type"].startswith("application/json")
    return answer.status, json.loads(body) if is_json else body.decode()


def is_running(pid: int) -> bool:
    """Whether there is such a process, one that has ended and waits for its parent aside."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@dataclass
class Load:
    """Partners that call again and again, each on one connection for as long as it is kept.

    A call is lost where its connection ends without a whole answer, though the answer before did
    not say that it would.
    """

    port: int
    request: bytes
    most: int = 1_000_000
    statuses: dict[int, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    async def run(self, partners: int, stop: asyncio.Event) -> None:
        """Until told to stop, or until so many calls were answered."""
        await asyncio.gather(*(self._partner(stop) for _ in range(partners)))

    async def _partner(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError as error:
                self.lost.append(f"no connection: {error}")
                await asyncio.sleep(0.01)
                continue
            try:
                while not stop.is_set() and await self._call(reader, writer):
                    if self.answered >= self.most:
                        stop.set()
            except (OSError, asyncio.IncompleteReadError) as error:
                self.lost.append(type(error).__name__)
            finally:
                writer.close()

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(self.request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        status = int(head[9:12])
        self.statuses[status] = self.statuses.get(status, 0) + 1
        return b"connection: close" not in head

    @property
    def answered(self) -> int:
        """How many calls were answered."""
        return sum(self.statuses.values())


def request(path: str, secret: str) -> bytes:
    """A read, in bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {secret}\r\n\r\n".encode()


def copy_of(folder: Path, to: Path) -> Path:
    """A state folder of its own, closed to others."""
    made = Path(shutil.copytree(folder, to))
    made.chmod(0o700)
    return made


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """The process stands still within the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def until_known(secret: str, *ports: int) -> None:
    """Waits until every worker knows the key: 30 calls in a row hardly ever miss one of two."""
    path = "/api/v1/clients?limit=1"
    for port in ports:
        eventually(lambda port=port: all(get(port, path, secret)[0] == 200 for _ in range(30)))
