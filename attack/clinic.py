"""The sample clinic, served by a process of its own, to be attacked."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from yarl import URL

from gateway.contract.operations import BASE_PATH

EVERY = (
    "PATIENT_READ", "CLIENT_READ", "APPOINTMENT_READ", "APPOINTMENT_CREATE", "CONSULTATION_READ",
    "INVOICE_READ", "STOCK_READ",
)  # fmt: skip
PLENTY = 1_000_000_000


@dataclass
class Clinic:
    """A gateway over a fresh sample clinic; `ids` are public ids, by the resource's name."""

    folder: Path = field(init=False)
    port: int = field(init=False)
    ids: dict[str, str] = field(init=False)

    def __enter__(self) -> Self:
        self._temporary = TemporaryDirectory(prefix="attacked-")
        self.folder = Path(self._temporary.name)
        words = ["demo", "--port", "0", "--operations-port", "0", "--json"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gateway", *words, "--state", str(self.folder / "state")],
            stdout=subprocess.PIPE,
            stderr=(self.folder / "stderr").open("wb"),
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        )
        told = json.loads((self._process.stdout or sys.stdin).readline() or "null")
        if told is None:
            raise RuntimeError((self.folder / "stderr").read_text())
        self.port = URL(told["base"]).port or 0
        self.ids = {"clients": told["ids"]["CLIENT"], "patients": told["ids"]["PATIENT"]}
        self.ids |= {"vet": told["ids"]["VET"], "slot": told["ids"]["SLOT"]}
        self.ids |= {"day": told["ids"]["DAY"]}
        for name in ("appointments", "consultations", "invoices", "stock", "appointmentTypes"):
            [self.ids[name]] = self.command("sample", name, "--limit", "1", "--json")
        self.ids["category"] = self._category(told["keys"]["FULL"])
        return self

    def _category(self, secret: str) -> str:
        """A category that some item in stock has."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", f"{BASE_PATH}/stock?limit=1", headers={"X-API-Key": secret})
            [item] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return str(item["category"])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._temporary.cleanup()

    def key(self, *, level: str = "FULL", expires: str | None = None) -> dict[str, str]:
        """A new key with every permission, and no limit that an attack would meet."""
        grants = [word for each in EVERY for word in ("--permission", each)]
        until = [] if expires is None else ["--expires", expires]
        limits = ["--name", "Attacker", "--level", level, "--limit", str(PLENTY)]
        made: dict[str, str] = self.command("keys", "create", *limits, *grants, *until, "--json")
        return made

    def command(self, *words: str) -> Any:
        """What the command line prints as JSON."""
        configuration = str(self.folder / "state" / "gateway.yaml")
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "--config", configuration, *words],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)
