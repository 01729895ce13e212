"""A gateway in processes of its own over a state that lies apart from its practice system."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.command import clinic_gateway, serving
from tests.conftest import CONFIGURATION

KEY = ("keys", "create", "--name", "Partner", "--level", "FULL")
PERMISSIONS = ("PATIENT_READ", "CLIENT_READ", "APPOINTMENT_READ", "APPOINTMENT_CREATE")


@dataclass(frozen=True)
class Place:
    """Where all lies: the practice system, the configuration, the state, the backups."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "etc" / "gateway.yaml"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def command(self, *words: str, code: int = 0) -> Any:
        """What a command prints as JSON; what it says on stderr where it is to fail."""
        done = clinic_gateway(*words, "--config", str(self.config), "--json")
        assert done.returncode == code, done
        return done.stderr if code else json.loads(done.stdout or "null")

    def key(self, *more: str) -> Any:
        permissions = [word for each in PERMISSIONS for word in ("--permission", each)]
        return self.command(*KEY, *permissions, *more)

    @contextmanager
    def served(self) -> Iterator["Caller"]:
        """A gateway that serves meanwhile."""
        with serving("serve", "--config", str(self.config)) as process:
            try:
                for line in process.stderr:
                    if '"serving"' in line:
                        break
                yield Caller(json.loads(line)["port"])
            finally:
                process.terminate()


def placed(folder: Path, clinic: Path, *more: str) -> Place:
    """A configuration and a practice system, without a state."""
    place = Place(folder)
    place.config.parent.mkdir(parents=True)
    shutil.copy(clinic, folder / "clinic.db")
    text = CONFIGURATION.replace("state: .", f"state: {place.state}")
    text = text.replace("sqlite:///clinic.db", f"sqlite:///{folder}/clinic.db")
    place.config.write_text("\n".join([text, *more]) + "\n")
    return place


@dataclass(frozen=True)
class Caller:
    """Calls one gateway."""

    port: int

    def send(
        self, secret: str, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Mapping[str, str], Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"X-API-Key": secret, "Content-Type": "application/json"}
        connection.request(method, f"/api/v1{path}", json.dumps(body) if body else None, sent)
        answer = connection.getresponse()
        found = answer.status, dict(answer.headers), json.loads(answer.read())
        connection.close()
        return found

    def wait_for(self, secret: str) -> None:
        """Until the gateway has heard of a new key."""
        deadline = time.monotonic() + 30
        while self.send(secret, "GET", "/clients?limit=1")[0] == 401:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def draft(self, secret: str, vet: str) -> dict[str, str]:
        """A booking that fits."""
        _, _, clients = self.send(secret, "GET", "/clients?limit=200")
        _, _, patients = self.send(secret, "GET", "/patients?limit=200")
        known = {each["id"] for each in clients}
        patient = next(
            each
            for each in patients
            if each["clientId"] in known and each["status"] == "ACTIVE"
        )  # fmt: skip
        wanted = {"clientId": patient["clientId"], "patientId": patient["id"], "vetId": vet}
        for ahead in range(1, 21):
            day = (datetime.now(UTC) + timedelta(days=ahead)).date()
            path = f"/appointments/available-slots?vetId={vet}&date={day}"
            if free := self.send(secret, "GET", path)[2]:
                return wanted | {"scheduledAt": free[0]["startTime"]}
        raise LookupError("no free time in three weeks")
