"""`clinic-gateway admin password`: lets somebody into the panel, for the first time or again."""

import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
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
from gateway.cli.deeds import Deed
from gateway.cli.lines import legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.stores import with_deeds
from gateway.cli.words import OneOf
from gateway.store import Store


@click.command()
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
@config_option
@json_option
def password(
    name: str, role: Role | None, one_time: bool, config: Path | None, as_json: bool
) -> None:
    """Give NAME a password for the panel; whoever is not known yet is added.

    It is asked for twice where a person types, else it is the first line on stdin.
    """
    try:
        name = name_of(name)
        word = made_up() if one_time else _asked()
        check(word, name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error

    async def given(store: Store, deed: Deed) -> bool:
        administrators, now = AdministratorStore(store), datetime.now(UTC)
        kept = one_time_digest(word) if one_time else await Passwords().hash(word)
        known = await administrators.find(name)
        if known is None:
            await _check_first(administrators, role or Role.ADMIN)
            async with deed("administrator added", name, role=role or Role.ADMIN):
                await administrators.add(name, role or Role.ADMIN, kept, now, one_time=one_time)
                await AttemptLimiter(store).forgive(of_name(name))
            return True
        whose, told = known.administrator, {} if role is None else {"role": role}
        async with deed("password reset", whose.id, name=whose.name, **told):
            await administrators.set_password(whose.id, kept, one_time=one_time, role=role)
            # whoever guessed at the name meanwhile keeps its owner out no longer
            await AttemptLimiter(store).forgive(of_name(name))
        return False

    is_new = _done(config, name, given)
    if as_json:
        told = {"name": name, "added": is_new} | ({"password": word} if one_time else {})
        click.echo(legible_json(told))
        return
    click.echo(f"{name} {'is added' if is_new else 'has a new password'}")
    if one_time:
        click.echo(f"\n{word}\n\nThis is the only time that it is shown, and it lets in once.")


def _done(config: Path | None, name: str, given: Callable[[Store, Deed], Awaitable[bool]]) -> bool:
    """Whether somebody is new; the end of the command where the name is not as it was found."""
    try:
        return with_deeds(config, given)
    except LastAdmin:
        fail(f"{name} is the last with the role admin: make somebody else one first")
    except NameTaken:
        fail(f"somebody else has added {name} meanwhile: to give another password, run this again")
    except NoSuchAdministrator:
        fail(f"somebody else has removed {name} meanwhile: to add them again, run this again")


async def _check_first(administrators: AdministratorStore, role: Role) -> None:
    """The end of the command where nobody would have the role admin."""
    everybody = await administrators.list()
    if role is not Role.ADMIN and not any(each.role is Role.ADMIN for each in everybody):
        fail("nobody has the role admin yet: add the first one with --role admin")


def _asked() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    line = sys.stdin.buffer.readline(4 * LONGEST + 2)
    return line.decode("utf-8", "replace").rstrip("\r\n")
