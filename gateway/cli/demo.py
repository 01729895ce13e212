"""`clinic-gateway demo`: serves the sample clinic with two keys, and shows how to call it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from shlex import quote
from signal import SIGHUP, SIGINT, SIGTERM
from typing import Any

import click

from adapters.base import Adapter, NotFound, Query
from gateway.administrators.passwords import made_up
from gateway.cli.admin import give_password
from gateway.cli.command import Command, RecordDeed, Run, now, option, recording
from gateway.cli.serve import serve_until_stopped
from gateway.cli.values import FOLDER
from gateway.contract.access import AccessLevel, Permission
from gateway.contract.operations import BASE_PATH
from gateway.identity import reason_of
from gateway.inquiries.keys import settings_told
from gateway.keys.key import Key
from gateway.lifecycle import Gateway
from gateway.policy.cases import cases_beside
from gateway.processes.event_loop import run_in_loop
from gateway.settings import StartRefused, load_settings, shipped_policy

NAMES = {"Demo BASIC": AccessLevel.BASIC, "Demo FULL": AccessLevel.FULL}
OVERLAP = timedelta(hours=24)
DAYS_AHEAD = 21
# The name of the demo's administrator.
ADMINISTRATOR = "manager"
# Setting -> the option that changes it.
OPTIONS = {
    "listen": "--port NUMBER",
    "operations_listen": "--operations-port NUMBER",
    "admin_listen": "--admin-port NUMBER",
    "state": "--state DIR",
}
NOBODY = "00000000-0000-0000-0000-000000000000"
# A demo ends with its terminal.
ENDS = (SIGTERM, SIGINT, SIGHUP)
CONFIGURATION = Path(__file__).with_name("demo.yaml")
SCHEMA = "policies.schema.json"
PORT = click.IntRange(0, 65535)


@click.command(cls=Command)
@option("--port", PORT, "", default=8080)
@option("--operations-port", PORT, "", default=8081)
@option(
    "--admin-port", PORT, "The panel's; the one after the operations port where it is left out."
)
@option(
    "--state",
    FOLDER,
    "Where the clinic, its configuration and the keys are kept.",
    default=Path(".demo"),
)
def demo(run: Run, port: int, operations_port: int, admin_port: int | None, state: Path) -> None:
    """Serve the sample clinic, and show how to call it.

    With --json the first line is an object with the addresses, the secrets and some ids.
    """
    configuration = run.config or prepare(state)
    if admin_port is None:  # any free one beside another free one
        admin_port = operations_port and min(operations_port + 1, 65535)
    ports = {"listen": port, "operations_listen": operations_port, "admin_listen": admin_port}
    update: dict[str, Any] = {name: f"127.0.0.1:{number}" for name, number in ports.items()}
    update |= {"admin_url": None, "public_url": None}
    settings = load_settings(configuration).model_copy(update=update)

    async def introduce(gateway: Gateway) -> None:
        data: dict[str, Any] = {"base": gateway.base}
        data["operations"] = f"http://127.0.0.1:{gateway.system.port}"
        async with recording(gateway.settings, gateway.store) as deed:
            data["admin"], word = {}, made_up()
            if gateway.panel is not None:
                await give_password(gateway.store, deed, ADMINISTRATOR, word, None, one_time=True)
                data["admin"] = {"url": gateway.panel.url, "name": ADMINISTRATOR, "password": word}
            data["keys"] = await _fresh_secrets(gateway, deed)
        data["ids"] = await _ids(gateway)
        run.say(data, () if run.as_json else await _lines(gateway, data, configuration.absolute()))

    try:
        serving = partial(serve_until_stopped, settings, introduce, ends=ENDS)
        run_in_loop(settings, serving)
    except StartRefused as error:
        if error.setting not in OPTIONS:
            raise
        option = OPTIONS[error.setting]
        made = "" if run.config else f' (make demo ARGS="{option}")'
        raise StartRefused(f"{error}, with {option}{made}") from error


def prepare(state: Path) -> Path:
    """Makes the demo's configuration and clinic if they are missing; returns the configuration."""
    from adapters.sample import MAPPING, create

    names = ("gateway.yaml", "clinic.db", "clinic.yaml")
    configuration, clinic, mapping = (state / name for name in names)
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        # nobody else can read these files, not even while they are written
        before = os.umask(0o077)
        try:
            if not clinic.exists():
                create(clinic, today=now().date())
            if not mapping.exists():
                shutil.copyfile(MAPPING, mapping)
            if not configuration.exists():  # an older one may name no policy
                policy = shipped_policy()
                for file in (policy, cases_beside(policy), policy.with_name(SCHEMA)):
                    if file.exists() and not (state / file.name).exists():
                        shutil.copyfile(file, state / file.name)
                shutil.copyfile(CONFIGURATION, configuration)
        finally:
            os.umask(before)
    except OSError as error:
        text = f"the demo's folder {state} cannot be written: {reason_of(error)}"
        raise StartRefused(f"{text}; choose one with --state") from error
    return configuration


async def _lines(gateway: Gateway, data: Mapping[str, Any], configuration: Path) -> Sequence[str]:
    """Returns the lines that show a client with both keys, and what to paste into another shell."""
    secrets, ids, panel, base = data["keys"], data["ids"], data["admin"], data["base"]
    path = f"{BASE_PATH}/clients/{ids.get('CLIENT', NOBODY)}"
    address = base.removesuffix(BASE_PATH) + path
    # the program by its path, so that it can be called from any folder
    called, beside = Path(sys.argv[0]), Path(sys.executable).with_name("clinic-gateway")
    script = called.absolute() if called.name == beside.name else beside
    program = quote(str(script)) if script.exists() else beside.name
    exports = {**secrets, "BASE": base, **ids}
    return (
        "The same client, as two keys see it:",
        "",
        *[
            f"{name}: {await asyncio.to_thread(_get, gateway.port, path, secret)}"
            for name, secret in secrets.items()
        ],
        "",
        "Ask for it yourself:",
        "",
        *(f"curl -s -w '\\n' -H \"X-API-Key: {secret}\" {address}" for secret in secrets.values()),
        "",
        "To go on in another shell, paste this into it:",
        "",
        *(f"export {name}={value}" for name, value in exports.items()),
        "",
        f"Its keys, and more keys: {program} --config {quote(str(configuration))} keys list",
        "",
        f"The interface: {base}/docs   The figures: {data['operations']}/metrics",
        "",
        f"The clinic's side, in the browser: {panel['url']}",
        f"Sign in as {panel['name']} with {panel['password']} (it lets in once)",
        "",
        "Ctrl-C ends the demo.",
    )


async def _fresh_secrets(gateway: Gateway, deed: RecordDeed) -> dict[str, str]:
    """Gives each demo key a new secret, as no secret is stored; returns them by access level."""
    listing = await gateway.keys.list()
    known = {key.name: key for key, _ in listing.keys if key.revoked_at is None}
    secrets = {}
    for name, level in NAMES.items():
        if key := known.get(name):
            async with deed("key rotated", key.id, name=name, overlap="24h"):
                secret, _ = await gateway.keys.rotate(key.id, OVERLAP, now())
        else:
            key = Key(name=name, permissions=frozenset(Permission), level=level, created_at=now())
            async with deed("key made", key.id, **settings_told(key)):
                secret = await gateway.keys.add(key)
        secrets[level.value] = secret
    await gateway.ring.refresh()
    return secrets


async def _ids(gateway: Gateway) -> dict[str, str]:
    """Returns the ids of a client with an animal and of a free time in the coming weeks."""
    at, adapter = now(), gateway.adapter
    patients = await adapter.read_many(Query(resource="patients", now=at, limit=50))
    for patient in patients.records:
        if patient["status"] == "DECEASED":  # no booking could be tried with it
            continue
        owner = patient["clientId"] or NOBODY
        try:
            await adapter.read_one(Query(resource="clients", now=at, id=owner))
        except NotFound:  # some owners have left the clinic, their animals stay on file
            continue
        return {"CLIENT": owner, "PATIENT": patient["id"], **await _free_time(adapter, at)}
    return {}


async def _free_time(adapter: Adapter, at: datetime) -> dict[str, str]:
    """Returns a free time on the first day that has one, the day and the veterinarian."""
    vets = await adapter.read_many(Query(resource="vets", now=at, limit=50))
    for ahead in range(1, DAYS_AHEAD):
        day = at.date() + timedelta(days=ahead)
        for vet in vets.records:
            values = {"vetId": vet["id"], "date": day}
            slots = await adapter.read_many(Query(resource="slots", now=at, values=values))
            if slots.records:
                first = min(slot["startTime"] for slot in slots.records)
                return {"VET": vet["id"], "DAY": day.isoformat(), "SLOT": first}
    return {}


def _get(port: int, path: str, secret: str) -> str:
    """Returns the body of an answer of the gateway."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path, headers={"X-API-Key": secret})
        return connection.getresponse().read().decode()
