"""After a run that met every kind of answer, no secret and no value rests in the state."""

import asyncio
import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gateway.identity import content_of
from gateway.keys.secret import digest
from gateway.settings import BackendSettings
from tests.command import clinic_gateway
from tests.conftest import RunningGateway, Start
from tests.partner import Partner
from tests.secrecy import SEALING, kept

ONCE = "once-and-never-again"
LOCK = "correct-horse-battery"
CLOUD = Path(__file__).parent.parent / "examples" / "json_cloud"
REASON = "Zwergspitz humpelt seit Donnerstag"


async def told_by_the_operations_listener(partner: Partner) -> str:
    """All that whoever watches the gateway is told."""
    told = ""
    for path in ("/healthz", "/readyz", "/metrics", "/nowhere"):
        async with partner._session.get(partner.gateway.operations + path) as answer:
            told += await answer.text()
    return told


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
    ids = await partner.ids()
    client = (await partner.get(f"/clients/{ids['clients']}")).data
    patient = (await partner.get(f"/patients/{ids['patients']}")).data
    calls = [
        partner.get(f"/clients/{client['id']}"),
        partner.get("/clients", search=client["lastName"]),
        partner.send("GET", "/clients", headers={"User-Agent": "Zwergspitz\xff"}),
        partner.post("/appointments", draft, Idempotency_Key=f"{ONCE}-{partner.secret}"),
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
    watched = (await told_by_the_operations_listener(partner)).encode()
    assert b"gateway_requests_total" in watched
    await gateway.gateway.aclose()
    files = kept(gateway.folder)
    sealing, audit = (
        content_of(files.pop(name).decode()).strip().encode() for name in (SEALING, "audit.key")
    )
    said = "".join(capfd.readouterr()).encode()
    written = b"\0".join([*files.values(), said, watched])
    ended = [each for each in gateway.entries() if each["outcome"] != "begun"]
    assert len(ended) == len(gateway.lines("access.jsonl")) > len(calls)
    for seal in (sealing, bytes.fromhex(sealing.decode()), audit, ONCE.encode()):
        assert seal not in written
    for secret in secrets:
        assert secret.encode() not in written
        assert secret[9:].encode() not in written
        assert (digest(secret) in written) == (secret != secrets[3])
    # what was booked rests in the ledger, for a replay, and nowhere else
    logs = b"".join([*(text for name, text in files.items() if ".jsonl" in name), said, watched])
    assert logs.count(b"\n") > 2 * len(calls)
    assert REASON.encode() in written
    values = [client[name] for name in ("lastName", "phone", "email", "address")]
    for word in ("Zwergspitz", "apiKey", "?search", patient["name"], *filter(None, values)):
        assert word.encode() not in logs, word


@pytest.mark.parametrize(
    ("asks", "how"),
    [
        ("login", {"user": "gateway", "password": LOCK}),
        ("basic: [user, password]", {"user": "gateway", "password": LOCK}),
        ("headers: {X-Api-Key: {secret: token}}", {"token": LOCK}),
    ],
    ids=["login", "basic", "token"],
)
async def test_what_the_practice_system_asks_for_is_said_nowhere(
    start_gateway: Start,
    session: aiohttp.ClientSession,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    asks: str,
    how: dict[str, str],
) -> None:
    asked = []

    async def refuse(request: web.BaseRequest) -> web.Response:
        asked.append(str(request.headers))
        return web.Response(status=403, text=f"{LOCK} is wrong")

    server = web.ServerRunner(web.Server(refuse))
    await server.setup()
    await (site := web.TCPSite(server, "127.0.0.1", 0)).start()
    [listening] = server.addresses
    options = {"adapter": "rest", "url": f"http://127.0.0.1:{listening[1]}/v2", **how}
    mapping = tmp_path / "mapping.yaml"
    text = (CLOUD / "mapping.yaml").read_text()
    before, _, after = text.partition("  login:")
    if asks != "login":
        text = f"{before}  {asks}\n  errors:{after.partition('  errors:')[2]}"
    mapping.write_text(text)
    backend = BackendSettings(**options, mapping=mapping)
    try:
        gateway = await start_gateway(backend=backend)
        partner = await Partner(gateway, session, None).with_key()
        answers = [await partner.get("/clients"), await partner.get("/appointments/types")]
        watched = await told_by_the_operations_listener(partner)
        await gateway.gateway.aclose()
    finally:
        await site.stop()
        await server.cleanup()
    assert asked, "the practice system was asked nothing"
    assert {answer.status for answer in answers} <= {502, 503}
    said = [watched, "".join(capfd.readouterr()), *(answer.text for answer in answers)]
    said += [content.decode("latin-1") for content in kept(gateway.folder).values()]
    config = tmp_path / "gateway.yaml"
    config.write_text(json.dumps({"backend": {**options, "mapping": str(mapping)}}))
    said.append(str(clinic_gateway("--config", str(config), "settings")))
    assert options["url"] in said[-1]
    basic = b64encode(f"gateway:{LOCK}".encode()).decode()
    for text in said:
        assert LOCK not in text
        assert basic not in text
