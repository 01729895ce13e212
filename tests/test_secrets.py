"""After a run that met every kind of answer, no secret and no value rests in the state."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.keys.secret import digest
from tests.conftest import RunningGateway
from tests.partner import Partner

REASON = "Zwergspitz humpelt seit Donnerstag"


def kept(folder: Path) -> bytes:
    """All that the gateway wrote; the clinic's own database is the clinic's."""
    return b"\0".join(
        file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith("clinic.db")
    )


async def test_no_secret_rests_on_disk_or_in_a_log(
    running_gateway: RunningGateway, partner: Partner, capfd: pytest.CaptureFixture[str]
) -> None:
    gateway, secrets = running_gateway, [partner.secret]
    poor = await partner.with_key(permissions=("STOCK_READ",), level="BASIC", limit=2)
    gone = await partner.with_key()
    await gone.revoke()
    secrets += [poor.secret, gone.secret, "vk_" + "A" * 48]
    command = [sys.executable, "-m", "gateway", "keys", "rotate", "--json", partner._key_id]
    config = ["--config", str(gateway.folder / "gateway.yaml")]
    done = await asyncio.to_thread(
        subprocess.run, [*command, *config], capture_output=True, text=True, check=True
    )
    secrets.append(json.loads(done.stdout)["key"])
    await gateway.gateway.ring.refresh()
    draft = {**await partner.draft(), "reason": REASON}
    client = (await partner.get("/clients", limit="1")).data[0]
    calls = [
        partner.get(f"/clients/{client['id']}"),
        partner.get("/clients", search=client["lastName"]),
        partner.send("GET", "/clients", headers={"User-Agent": "Zwergspitz\xff"}),
        partner.post("/appointments", draft, Idempotency_Key=f"once-{partner.secret}"),
        partner.post("/appointments", draft),
        partner.post("/appointments", {**draft, partner.secret: 1}),
        partner.send("POST", "/appointments", body=partner.secret.encode()),
        # those who put their secret where it does not belong
        partner.get(f"/clients/{partner.secret}"),
        partner.get("/clients", apiKey=partner.secret),
        partner.get("/clients", cursor=partner.secret),
        partner.send("GET", f"/{partner.secret}"),
        partner.send("GET", "/stock", headers={"X-Request-Id": "a" * 65 + partner.secret}),
        partner.send("GET", "/stock", headers={"Authorization": f"Bearer {partner.secret}"}),
        partner.anonymous().get("/clients"),
        partner.as_key(secrets[3]).get("/clients"),
        gone.get("/clients"),
        poor.get("/clients"),
        *(poor.get("/stock") for _ in range(3)),
    ]
    statuses = {(await call).status for call in calls}
    assert statuses == {200, 201, 400, 401, 403, 404, 409, 415, 429}
    await gateway.gateway.aclose()
    written = kept(gateway.folder) + "".join(capfd.readouterr()).encode()
    ended = [each for each in gateway.entries() if each["outcome"] != "begun"]
    assert len(ended) == len(gateway.lines("access.jsonl")) > len(calls)
    for secret in secrets:
        assert secret.encode() not in written
        assert secret[9:].encode() not in written
        assert (digest(secret) in written) == (secret != secrets[3])
    # what was booked rests in the ledger, for a replay, and nowhere else
    logs = b"".join(file.read_bytes() for file in gateway.folder.rglob("*.jsonl"))
    assert REASON.encode() in written
    for word in ("Zwergspitz", client["lastName"], client["email"] or "@", "apiKey", "search"):
        assert word.encode() not in logs
