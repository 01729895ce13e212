"""`clinic-gateway admin`: shows, adds and removes the administrators who may use the panel."""

import asyncio
from typing import Any

import click

from gateway.administrators import administrator, passwords
from gateway.administrators.administrator import AdministratorStore, Role
from gateway.administrators.sessions import SessionStore
from gateway.cli.command import CommandGroup, RecordDeed, Run, now, option, recording, typed
from gateway.cli.output import fail, members, plain
from gateway.cli.values import FLAG, ONE_LINE, one_of
from gateway.store import Store


@click.group(cls=CommandGroup)
def admin() -> None:
    """Who may use the panel in the browser."""


@admin.command("list")
async def list_administrators(run: Run) -> None:
    """All administrators."""
    async with run.store() as store:
        administrators = await AdministratorStore(store).list()
    rows = [
        members(owner, "name", "role")
        | {"hasToChoose": owner.one_time, "createdAt": owner.created_at}
        | {"signedInAt": owner.signed_in_at}
        for owner in administrators
    ]
    lines = [
        f"{owner.name}: {owner.role}, last signed in {plain(owner.signed_in_at or 'never')}"
        for owner in administrators
    ]
    run.say(rows, lines or ["nobody yet; `clinic-gateway admin password NAME` adds somebody"])


@admin.command()
@click.argument("name")
@option(
    "--role",
    one_of("ROLE", Role, Role),
    "admin, operator (no keys) or auditor (reads only); of somebody new admin where it is left"
    " out.",
)
@option("--one-time", FLAG, "Make one up that lets in once; its owner then chooses another.")
def password(run: Run, name: str, role: Role | None, one_time: bool) -> None:
    """Give NAME a password for the panel; whoever is not known yet is added.

    It is asked for twice where a person types, else it is the first line on stdin.
    """
    try:
        name = administrator.name_of(name)
        word = passwords.made_up() if one_time else typed("Password", twice=True)
        passwords.check(word, name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error

    async def give() -> bool:
        async with run.store() as store, recording(run.settings, store) as deed:
            return await give_password(store, deed, name, word, role, one_time=one_time)

    try:
        is_new = asyncio.run(give())
    except administrator.LastAdmin:
        fail(f"{name} is the last with the role admin: make somebody else one first")
    except administrator.NameTaken:
        fail(f"somebody else has added {name} meanwhile: to give another password, run this again")
    except administrator.NoSuchAdministrator:
        fail(f"somebody else has removed {name} meanwhile: to add them again, run this again")
    data: dict[str, Any] = {"name": name, "added": is_new}
    lines = [f"{name} {'is added' if is_new else 'has a new password'}"]
    if one_time:
        data["password"] = word
        lines += ["", word, "", "This is the only time that it is shown, and it lets in once."]
    run.say(data, lines)


async def give_password(
    store: Store, deed: RecordDeed, name: str, word: str, role: Role | None, *, one_time: bool
) -> bool:
    """Returns whether the name is new; ends the command where nobody would have the role admin."""
    digest = passwords.one_time_digest(word) if one_time else await passwords.Passwords().hash(word)
    administrators, attempts = AdministratorStore(store), passwords.AttemptLimiter(store)
    known = await administrators.find(name)
    if known is None:
        role = role or Role.ADMIN
        roles = {owner.role for owner in await administrators.list()}
        if Role.ADMIN not in {role, *roles}:
            fail("nobody has the role admin yet: add the first one with --role admin")
        async with deed("administrator added", name, role=role):
            await administrators.add(name, role, digest, now(), one_time=one_time)
            await attempts.forgive(passwords.of_name(name))
        return True
    owner, details = known.administrator, {} if role is None else {"role": role}
    async with deed("password reset", owner.id, name=owner.name, **details):
        await administrators.set_password(owner.id, digest, one_time=one_time, role=role)
        # failed attempts of others no longer keep the owner out
        await attempts.forgive(passwords.of_name(name))
    return False


@admin.command()
@click.argument("name", type=ONE_LINE)
async def remove(run: Run, name: str) -> None:
    """Take NAME away: whoever is signed in with it is signed out."""
    nobody = f"nobody has the name {name}; `clinic-gateway admin list` shows all"
    try:
        async with run.store() as store:
            administrators = AdministratorStore(store)
            known = await administrators.find(name)
            if known is None:
                fail(nobody)
            owner = known.administrator
            async with run.deed(store, "administrator removed", owner.id, name=owner.name):
                await administrators.remove(owner.id)
    except administrator.NoSuchAdministrator:  # somebody else has just done it
        fail(nobody)
    except administrator.LastAdmin:
        fail(
            "nobody would be left with the role admin; add another with `clinic-gateway admin"
            " password` first"
        )
    run.say({"removed": name}, [f"{name} is removed"])


@admin.command()
@option("--end", FLAG, "Sign everybody out.")
async def sessions(run: Run, end: bool) -> None:
    """Who is signed in."""
    async with run.store() as store:
        if end:
            async with run.deed(store, "sessions ended") as details:
                details["sessions"] = number = await SessionStore(store).end_all()
            run.say({"ended": number}, [f"{number} signed out"])
            return
        sessions = await SessionStore(store).list(now())
    rows = [
        {
            "name": session.administrator.name,
            "since": session.created_at,
            "seenAt": session.seen_at,
            "address": session.address,
        }
        for session in sessions
    ]
    lines = [f"{row['name']} since {plain(row['since'])}, from {row['address']}" for row in rows]
    run.say(rows, lines or ["nobody is signed in"])
