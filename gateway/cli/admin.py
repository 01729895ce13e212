"""`clinic-gateway admin`: who may use the panel in the browser."""

import sys
from pathlib import Path

import click

from gateway.administrators.administrator import (
    AdministratorStore,
    LastAdmin,
    NameTaken,
    NoSuchAdministrator,
    Role,
    name_of,
)
from gateway.administrators.passwords import (
    LONGEST,
    AttemptLimiter,
    Passwords,
    check,
    made_up,
    of_name,
    one_time_digest,
)
from gateway.administrators.sessions import SessionStore
from gateway.cli.deeds import RecordDeed, now, with_deeds, with_store
from gateway.cli.lines import legible_json, say
from gateway.cli.options import CommandGroup, OneLine, OneOf, fail, shared_options
from gateway.contract.fields import write_instant
from gateway.store import Store


@click.group(cls=CommandGroup)
def admin() -> None:
    """Who may use the panel in the browser."""


@admin.command("list")
@shared_options
def list_administrators(config: Path | None, as_json: bool) -> None:
    """All administrators."""
    administrators = with_store(config, lambda store: AdministratorStore(store).list())
    rows = [
        {
            "name": each.name,
            "role": each.role,
            "hasToChoose": each.one_time,
            "createdAt": write_instant(each.created_at),
            "signedInAt": write_instant(each.signed_in_at) if each.signed_in_at else None,
        }
        for each in administrators
    ]
    lines = [
        f"{row['name']}: {row['role']}, last signed in {row['signedInAt'] or 'never'}"
        for row in rows
    ]
    nobody = "nobody yet; `clinic-gateway admin password NAME` adds somebody"
    say(rows, lines or [nobody], as_json=as_json)


@admin.command()
@click.argument("name")
@click.option(
    "--role",
    type=OneOf("ROLE", Role, Role),
    help="admin, operator (no keys) or auditor (reads only); of somebody new admin where it is left"
    " out.",
)
@click.option(
    "--one-time",
    is_flag=True,
    help="Make one up that lets in once; its owner then chooses another.",
)
@shared_options
def password(
    name: str, role: Role | None, one_time: bool, config: Path | None, as_json: bool
) -> None:
    """Give NAME a password for the panel; whoever is not known yet is added.

    It is asked for twice where a person types, else it is the first line on stdin.
    """
    try:
        name = name_of(name)
        word = made_up() if one_time else _typed_password()
        check(word, name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error

    async def given(store: Store, deed: RecordDeed) -> bool:
        digest = one_time_digest(word) if one_time else await Passwords().hash(word)
        return await _give_password(store, deed, name, role, digest, one_time=one_time)

    try:
        is_new = with_deeds(config, given)
    except LastAdmin:
        fail(f"{name} is the last with the role admin: make somebody else one first")
    except NameTaken:
        fail(f"somebody else has added {name} meanwhile: to give another password, run this again")
    except NoSuchAdministrator:
        fail(f"somebody else has removed {name} meanwhile: to add them again, run this again")
    if as_json:
        data = {"name": name, "added": is_new} | ({"password": word} if one_time else {})
        click.echo(legible_json(data))
        return
    click.echo(f"{name} {'is added' if is_new else 'has a new password'}")
    if one_time:
        click.echo(f"\n{word}\n\nThis is the only time that it is shown, and it lets in once.")


async def _give_password(
    store: Store, deed: RecordDeed, name: str, role: Role | None, digest: str, *, one_time: bool
) -> bool:
    """Whether somebody is new; the end of the command where nobody would have the role admin."""
    administrators = AdministratorStore(store)
    known = await administrators.find(name)
    if known is None:
        role = role or Role.ADMIN
        everybody = await administrators.list()
        if role is not Role.ADMIN and not any(each.role is Role.ADMIN for each in everybody):
            fail("nobody has the role admin yet: add the first one with --role admin")
        async with deed("administrator added", name, role=role):
            await administrators.add(name, role, digest, now(), one_time=one_time)
            await AttemptLimiter(store).forgive(of_name(name))
        return True
    owner, details = known.administrator, {} if role is None else {"role": role}
    async with deed("password reset", owner.id, name=owner.name, **details):
        await administrators.set_password(owner.id, digest, one_time=one_time, role=role)
        # whoever guessed at the name meanwhile keeps its owner out no longer
        await AttemptLimiter(store).forgive(of_name(name))
    return False


def _typed_password() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    line = sys.stdin.buffer.readline(4 * LONGEST + 2)
    return line.decode("utf-8", "replace").rstrip("\r\n")


@admin.command()
@click.argument("name", type=OneLine())
@shared_options
def remove(name: str, config: Path | None, as_json: bool) -> None:
    """Take NAME away: whoever is signed in with it is signed out."""

    async def removed(store: Store, deed: RecordDeed) -> bool:
        administrators = AdministratorStore(store)
        known = await administrators.find(name)
        if known is not None:
            owner = known.administrator
            async with deed("administrator removed", owner.id, name=owner.name):
                await administrators.remove(owner.id)
        return known is not None

    try:
        is_removed = with_deeds(config, removed)
    except NoSuchAdministrator:  # somebody else has just done it
        is_removed = False
    except LastAdmin:
        fail(
            "nobody would be left with the role admin; add another with `clinic-gateway admin"
            " password` first"
        )
    if not is_removed:
        fail(f"nobody has the name {name}; `clinic-gateway admin list` shows all")
    say({"removed": name}, [f"{name} is removed"], as_json=as_json)


@admin.command()
@click.option("--end", is_flag=True, help="Sign everybody out.")
@shared_options
def sessions(end: bool, config: Path | None, as_json: bool) -> None:
    """Who is signed in."""

    async def ended(store: Store, deed: RecordDeed) -> int:
        async with deed("sessions ended") as details:
            details["sessions"] = number = await SessionStore(store).end_all()
        return number

    if end:
        number = with_deeds(config, ended)
        say({"ended": number}, [f"{number} signed out"], as_json=as_json)
        return
    rows = [
        {
            "name": each.administrator.name,
            "since": write_instant(each.created_at),
            "seenAt": write_instant(each.seen_at),
            "address": each.address,
        }
        for each in with_store(config, lambda store: SessionStore(store).list(now()))
    ]
    lines = [f"{row['name']} since {row['since']}, from {row['address']}" for row in rows]
    say(rows, lines or ["nobody is signed in"], as_json=as_json)
