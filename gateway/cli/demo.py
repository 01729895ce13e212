"""`clinic-gateway demo`: the sample clinic, two keys, and lines to paste into another shell."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from shlex import quote
from signal import SIGHUP, SIGINT, SIGTERM

import click

from adapters.base import NotFound, Query
from gateway.administrators.administrator import AdministratorStore, Role
from gateway.administrators.passwords import made_up, one_time_digest
from gateway.app import utc_now
from gateway.cli.deeds import Deed, recording
from gateway.cli.options import config_option, json_option
from gateway.cli.serve import serve_until_stopped
from gateway.contract.access import AccessLevel, Permission
from gateway.contract.operations import BASE_PATH
from gateway.inquiries.keys import settings_told
from gateway.keys.key import Key, new_key
from gateway.policy.cases.run import cases_beside
from gateway.serving import Gateway
from gateway.settings import StartRefused, load_settings, shipped_policy

NAMES = {"Demo BASIC": AccessLevel.BASIC, "Demo FULL": AccessLevel.FULL}
OVERLAP = timedelta(hours=24)
DAYS_AHEAD = 21
# Who may use the demo's panel.
ADMINISTRATOR = "manager"
# What another of these is chosen with.
OPTIONS = {
    "listen": "--port NUMBER",
    "operations_listen": "--operations-port NUMBER",
    "admin_listen": "--admin-port NUMBER",
    "state": "--state DIR",
}
NOBODY = "00000000-0000-0000-0000-000000000000"

CONFIGURATION = """\
# The demo's configuration; `clinic-gateway settings` explains every setting.
# Paths are relative to this file.

state: .
shutdown_delay: 0

# Which field opens at which level, beside this file: change it, and the running demo follows.
# What a change hides takes effect at once; what it opens waits for an approval.
policy:
  file: policies.yaml
  widening: approve

backend:
  # The sample clinic: a database that looks like an old practice system's.
  adapter: sql
  url: sqlite:///clinic.db
  # What undoes its peculiarities, beside this file: a good start for a mapping of your own.
  mapping: clinic.yaml
"""


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option("--operations-port", type=click.IntRange(0, 65535), default=8081, show_default=True)
@click.option(
    "--admin-port",
    type=click.IntRange(0, 65535),
    help="The panel's; the one after the operations port where it is left out.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".demo"),
    show_default=True,
    help="Where the clinic, its configuration and the keys are kept.",
)
@config_option
@json_option
def demo(
    port: int,
    operations_port: int,
    admin_port: int | None,
    state: Path,
    config: Path | None,
    as_json: bool,
) -> None:
    """Serve the sample clinic, and show how to call it.

    With --json the first line is an object with the addresses, the secrets and some ids.
    """
    configuration = config or prepare(state)
    settings = load_settings(configuration).model_copy(
        update={
            "listen": f"127.0.0.1:{port}",
            "operations_listen": f"127.0.0.1:{operations_port}",
            "admin_listen": f"127.0.0.1:{_after(operations_port, admin_port)}",
            "admin_url": None,
            "public_url": None,
        }
    )
    # a demo ends with its terminal
    ends = (SIGTERM, SIGINT, SIGHUP)
    introduce = (
        _hand_over if as_json else partial(_introduce, configuration=configuration.absolute())
    )
    try:
        asyncio.run(serve_until_stopped(settings, introduce, ends=ends))
    except StartRefused as error:
        if error.setting not in OPTIONS:
            raise
        option = OPTIONS[error.setting]
        made = "" if config else f' (make demo ARGS="{option}")'
        raise StartRefused(f"{error}, with {option}{made}") from error


def _after(operations_port: int, admin_port: int | None) -> int:
    """The panel's port, where none is named: any free one beside another free one."""
    if admin_port is not None:
        return admin_port
    return 0 if operations_port == 0 else min(operations_port + 1, 65535)


def prepare(state: Path) -> Path:
    """The demo's configuration; it and the clinic are made where they are not there yet."""
    from adapters.sample import MAPPING, create

    configuration, clinic, mapping = (
        state / name for name in ("gateway.yaml", "clinic.db", "clinic.yaml")
    )
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _for_the_owner_alone():
            if not clinic.exists():
                create(clinic, today=utc_now().date())
            if not mapping.exists():
                shutil.copyfile(MAPPING, mapping)
            if not configuration.exists():  # an older one may name no policy
                _copy_policy(state)
                configuration.write_text(CONFIGURATION, "utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(
            f"the demo's folder {state} cannot be written: {reason}; choose one with --state"
        ) from error
    return configuration


def _copy_policy(state: Path) -> None:
    """The shipped policy with its cases and its schema, to be changed there."""
    policy = shipped_policy()
    schema = policy.with_name("policies.schema.json")
    for file in (policy, cases_beside(policy), schema):
        if file.exists() and not (state / file.name).exists():
            shutil.copyfile(file, state / file.name)


@contextmanager
def _for_the_owner_alone() -> Iterator[None]:
    """What this process makes meanwhile, nobody else can read, not even while it is written."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


async def _hand_over(gateway: Gateway) -> None:
    """One line for another program."""
    shown = {
        "base": gateway.base,
        "operations": f"http://127.0.0.1:{gateway.operations_port}",
        "admin": await _panel(gateway),
        "keys": await _fresh_secrets(gateway),
        "ids": await _ids(gateway),
    }
    click.echo(json.dumps(shown))


async def _introduce(gateway: Gateway, configuration: Path) -> None:
    """The same client with both keys, and what to paste into another shell."""
    secrets = await _fresh_secrets(gateway)
    ids = await _ids(gateway)
    path = f"{BASE_PATH}/clients/{ids.get('CLIENT', NOBODY)}"
    click.echo("The same client, as two keys see it:\n")
    for name, secret in secrets.items():
        record = await asyncio.to_thread(_get, gateway.port, path, secret)
        click.echo(f"{name}: {record}")
    click.echo("\nAsk for it yourself:\n")
    address = gateway.base.removesuffix(BASE_PATH) + path
    for secret in secrets.values():
        click.echo(f"curl -s -w '\\n' -H \"X-API-Key: {secret}\" {address}")
    click.echo("\nTo go on in another shell, paste this into it:\n")
    for name, value in {**secrets, "BASE": gateway.base, **ids}.items():
        click.echo(f"export {name}={value}")
    system = f"http://127.0.0.1:{gateway.operations_port}"
    own = quote(str(configuration))
    click.echo(f"\nIts keys, and more keys: {_program()} --config {own} keys list")
    click.echo(f"\nThe interface: {gateway.base}/docs   The figures: {system}/metrics")
    panel = await _panel(gateway)
    click.echo(f"\nThe clinic's side, in the browser: {panel['url']}")
    click.echo(f"Sign in as {panel['name']} with {panel['password']} (it lets in once)\n")
    click.echo("Ctrl-C ends the demo.")


def _program() -> str:
    """How this program was called, so that it can be called again from anywhere."""
    called, beside = Path(sys.argv[0]), Path(sys.executable).with_name("clinic-gateway")
    known = called.absolute() if called.name == beside.name else beside
    return quote(str(known)) if known.exists() else beside.name


async def _panel(gateway: Gateway) -> dict[str, str]:
    """The panel's address, and a fresh password that lets its administrator in once."""
    if gateway.panel is None:
        return {}
    administrators, password = AdministratorStore(gateway.store), made_up()
    kept, known = one_time_digest(password), await administrators.find(ADMINISTRATOR)
    async with recording(gateway.settings, gateway.store) as deed:
        if known is None:
            async with deed("administrator added", ADMINISTRATOR, role=Role.ADMIN):
                await administrators.add(ADMINISTRATOR, Role.ADMIN, kept, utc_now(), one_time=True)
        else:
            whose = known.administrator
            async with deed("password reset", whose.id, name=whose.name):
                await administrators.set_password(whose.id, kept, one_time=True)
    return {"url": gateway.panel.url, "name": ADMINISTRATOR, "password": password}


async def _fresh_secrets(gateway: Gateway) -> dict[str, str]:
    """A new secret for each demo key: none is kept anywhere, so a later start needs others."""
    listing = await gateway.keys.list()
    known = {key.name: key for key, _ in listing.keys if key.revoked_at is None}
    secrets = {}
    async with recording(gateway.settings, gateway.store) as deed:
        for name, level in NAMES.items():
            secrets[level.value] = await _fresh_secret(gateway, deed, name, known.get(name))
    await gateway.ring.refresh()
    return secrets


async def _fresh_secret(gateway: Gateway, deed: Deed, name: str, known: Key | None) -> str:
    """That of a key of before, or of a new one."""
    if known is not None:
        async with deed("key rotated", known.id, name=name, overlap="24h"):
            return (await gateway.keys.rotate(known.id, OVERLAP, utc_now())).secret
    key = new_key(name=name, permissions=Permission, level=NAMES[name], now=utc_now())
    async with deed("key made", key.id, **settings_told(key)):
        return await gateway.keys.add(key)


async def _ids(gateway: Gateway) -> dict[str, str]:
    """A client with an animal, and a free time of a veterinarian in the coming weeks."""
    now = utc_now()
    patients = await gateway.adapter.read_many(Query(resource="patients", now=now, limit=50))
    for patient in patients.records:
        if patient["status"] == "DECEASED":  # no booking could be tried with it
            continue
        owner = Query(resource="clients", now=now, id=patient["clientId"] or NOBODY)
        try:
            await gateway.adapter.read_one(owner)
        except NotFound:  # some owners have left the clinic, their animals stay on file
            continue
        return {"CLIENT": owner.id, "PATIENT": patient["id"], **await _free_time(gateway, now)}
    return {}


async def _free_time(gateway: Gateway, now: datetime) -> dict[str, str]:
    """The first free time of the first veterinarian who has one, on the first such day."""
    read = gateway.adapter.read_many
    vets = await read(Query(resource="vets", now=now, limit=50))
    for ahead in range(1, DAYS_AHEAD):
        day = now.date() + timedelta(days=ahead)
        for vet in vets.records:
            wanted = {"vetId": vet["id"], "date": day}
            slots = await read(Query(resource="slots", now=now, values=wanted))
            if slots.records:
                first = min(each["startTime"] for each in slots.records)
                return {"VET": vet["id"], "DAY": day.isoformat(), "SLOT": first}
    return {}


def _get(port: int, path: str, secret: str) -> str:
    """An answer of the gateway itself, as a partner gets it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"X-API-Key": secret})
        return connection.getresponse().read().decode()
    finally:
        connection.close()
