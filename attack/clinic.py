"""What an attack needs of the clinic behind a target: keys of every kind, and ids that exist."""

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import Any

from attack.target import NO_LIMIT, Target
from gateway.contract.access import Permission
from gateway.contract.operations import BASE_PATH

DAYS_AHEAD = 21


@dataclass(frozen=True, slots=True)
class Clinic:
    """The clinic of a target, by its command line and by its interface."""

    target: Target

    def key(self, *, expires: str | None = None, network: str | None = None) -> dict[str, str]:
        """A new key with every permission, and no limit that an attack would meet."""
        grants = [word for each in Permission for word in ("--permission", each)]
        until = [] if expires is None else ["--expires", expires]
        until += [] if network is None else ["--network", network]
        settings = ["--name", "Attacker", "--level", "FULL", "--limit", str(NO_LIMIT)]
        made: dict[str, str] = self.command("keys", "create", *settings, *grants, *until)
        return made

    def command(self, *words: str) -> Any:
        """What the command line prints as JSON."""
        config = str(self.target.log.parent / "gateway.yaml")
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "--config", config, *words, "--json"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    def ids(self) -> dict[str, str]:
        """Public ids by the name of what they are of; a vet with a day and a free slot.

        The client has an animal that can be booked for, and invoices on more than one page.
        """
        found = {}
        for name in ("appointments", "consultations", "invoices", "appointmentTypes"):
            [found[name]] = self.command("sample", name, "--limit", "1")
        for patient in self._get("/patients"):
            # some owners have left the clinic, their animals stay on file
            client = patient["clientId"]
            if patient["status"] == "DECEASED" or not client:
                continue
            invoices = self._get(f"/invoices/client/{client}?limit=2")
            if isinstance(invoices, list) and len(invoices) > 1:
                found |= {"patients": patient["id"], "clients": client}
                break
        else:
            raise LookupError("no such client on the first page of animals")
        [item] = self._get("/stock?limit=1")
        found |= {"stock": item["id"], "category": item["category"]}
        return found | self._free_time(self.command("vets"))

    def _free_time(self, vets: list[dict[str, str]]) -> dict[str, str]:
        today = datetime.now(UTC).date()
        for ahead in range(1, DAYS_AHEAD):
            day = (today + timedelta(days=ahead)).isoformat()
            for vet in vets:
                path = f"/appointments/available-slots?vetId={vet['id']}&date={day}"
                if free := self._get(path):
                    return {"vet": vet["id"], "day": day, "slot": free[0]["startTime"]}
        raise LookupError("no veterinarian has time")

    def _get(self, path: str) -> Any:
        connection = HTTPConnection("127.0.0.1", self.target.port, timeout=30)
        try:
            connection.request("GET", BASE_PATH + path, headers={"X-API-Key": self.target.stolen})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()
