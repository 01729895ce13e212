"""`clinic-gateway init`: guides from a database to a served gateway with one key.

It types the other commands for its user. What is there already is not asked again, so that it
resumes where it stopped.
"""

import asyncio
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import click

from adapters.base import AdapterError
from adapters.doctor.sql.first_look import (
    FirstLook,
    check_address,
    looked_at,
    may_have_password,
    read_grants,
    with_password,
    write_grants,
)
from adapters.mapping.loader import load_mapping
from adapters.mapping.models import MappingFile
from gateway import __version__
from gateway.administrators.administrator import AdministratorStore
from gateway.backend import shapes
from gateway.cli.backend import own_zone
from gateway.cli.command import LONGEST_LINE, Command, Run, typed
from gateway.cli.output import fail, say
from gateway.contract.access import LEVELS, Permission
from gateway.contract.operations import offered
from gateway.identity import reason_of
from gateway.keys.store import KeyStore
from gateway.settings.kinds import read_zone, secret_text

CONFIGURATION, MAPPING = Path("gateway.yaml"), "clinic.yaml"
# Under this name the store keeps the mark of the mapping that was last found sound.
SOUND = "init.sound"
STEPS = 6
FILE = "(a file: read access; for bookings write access, to it and to its folder)"
TEXT = """\
# `clinic-gateway settings` explains every setting. Paths are relative to this file.
state: state
backend:
  url: {url}
  mapping: {mapping}
"""


@click.command(cls=Command, has_json=False)
def init(run: Run) -> None:
    """Connect a practice database, step by step, and serve it.

    The steps are the connection, the account's rights, a first mapping, its check with a rehearsal
    of bookings, the first partner's key, and the panel's password. Run it again at any time: it
    goes on where it stopped. Each step prints the command that does the same by hand.
    """
    guide = Guide(run.config or CONFIGURATION)
    for step in (guide.connect, guide.draft, guide.check, guide.key, guide.password, guide.serve):
        step()


class Guide:
    """The steps, in order. Each ends the command where it cannot be done yet, and says why."""

    def __init__(self, configuration: Path) -> None:
        self._configuration = configuration
        self._number = 0

    def connect(self) -> None:
        """Writes the configuration where there is none; shows the account's rights."""
        self._begin("The practice database")
        if not self._configuration.exists():
            self._configure()
        url = secret_text(self._run.settings.backend.url)
        if not url:
            fail(f"{self._configuration} names no database: write it there as backend.url")
        try:
            lines = asyncio.run(read_grants(url)) or [FILE]
            say("It needs an account that can read, and write nothing but what a booking writes:")
            say("", *(f"    {line}" for line in lines), "")
            seen = asyncio.run(looked_at(url))
        except (ValueError, AdapterError) as error:
            fail(f"backend.url in {self._configuration}: {error}. Mend it, and run this again")
        self._tell(seen)

    def draft(self) -> None:
        """Drafts a mapping where there is none."""
        self._begin("A first mapping")
        if self._mapping.exists():
            say(f"{self._mapping} is there already.")
            return
        own = own_zone()  # a server on UTC says nothing of the clinic's
        default = own if "/" in own and not own.startswith("Etc/") else ""
        zone = _asked("The clock on the clinic's wall, such as Europe/Paris", default, read_zone)
        self._typed("backend", "draft", "--zone", zone, "--output", str(self._mapping))

    def check(self) -> None:
        """Checks the mapping and rehearses bookings, unless nothing changed since it was sound."""
        self._begin("Is the mapping right?")
        url = secret_text(self._run.settings.backend.url)
        what = f"{url}\n{__version__}\n".encode() + self._mapping.read_bytes()
        mark = hashlib.sha256(what).hexdigest()
        if asyncio.run(self._kept()) == mark:
            say(f"{self._mapping} was checked with this database, and has not changed since.")
            return
        mapping = self._loaded()
        books = mapping is not None and mapping.offers("booking")
        rehearses = books and mapping is not None and self._may_write(mapping)
        if self._typed("backend", "check", *(["--booking"] if rehearses else []), may_fail=True):
            fail(
                f"Go through {self._mapping} with the lines above (docs/mapping.md has every"
                " word), and run `clinic-gateway init` again: it goes on here."
            )
        if rehearses or not books:
            asyncio.run(self._keep(mark))

    def _may_write(self, mapping: MappingFile) -> bool:
        """Shows the rights that bookings need; returns whether they may be rehearsed."""
        url = secret_text(self._run.settings.backend.url)
        if lines := asyncio.run(write_grants(url, mapping)):
            say("Bookings write, so the account needs also:", "")
            say(*(f"    {line}" for line in lines), "")
        say("A rehearsal makes each kind of booking, and undoes it at once.")
        return _agreed("Rehearse bookings now?")

    def key(self) -> None:
        """Makes the first partner's key where there is none."""
        self._begin("The first partner's key")
        if asyncio.run(self._has_keys()):
            say("There are keys already: clinic-gateway keys list")
            return
        useful = self._permissions()
        name = _asked("Who gets it", "First partner", str)
        say(f"What may it do? {', '.join(useful)}")
        first = next((it for it in useful if it != Permission.APPOINTMENT_CREATE), useful[0])
        chosen = _asked("Permissions, separated by spaces", first, _permissions)
        level = _asked(f"How much does it see ({', '.join(LEVELS)})", LEVELS[0], _level)
        named = [word for permission in chosen.split() for word in ("--permission", permission)]
        self._typed("keys", "create", "--name", name, *named, "--level", level)

    def password(self) -> None:
        """Makes the first administrator of the panel where there is none."""
        self._begin("The panel")
        if asyncio.run(self._has_administrators()):
            say("Somebody can sign in already: clinic-gateway admin list")
            return
        name = _asked("Who signs in to the panel", "manager", str)
        self._typed("admin", "password", name, "--one-time")

    def serve(self) -> None:
        """Serves, if that is wished."""
        self._begin("Serve it")
        if _agreed("Serve now, until Ctrl-C?"):
            self._typed("serve")
        else:
            say("Serve it with: clinic-gateway serve")

    @property
    def _run(self) -> Run:
        """The configuration as it is now."""
        return Run(self._configuration, as_json=False)

    @property
    def _mapping(self) -> Path:
        mapping = self._run.settings.backend.mapping
        if mapping is None:
            fail(f"{self._configuration} names no mapping: write backend.mapping: {MAPPING} there")
        with suppress(ValueError):  # it is elsewhere
            return mapping.relative_to(Path.cwd())
        return mapping

    def _begin(self, title: str) -> None:
        self._number += 1
        say("", f"{self._number}/{STEPS} {title}", "")

    def _configure(self) -> None:
        """Asks for the address and writes the configuration, readable by its owner alone."""
        say(
            "Its address, without a password, such as postgresql://gateway@server/practice,",
            "mysql://gateway@server/practice, mssql://..., or sqlite:///practice.db",
        )
        url = _asked("Address", "sqlite:///practice.db", check_address)
        if may_have_password(url):
            url = with_password(url, typed("Password of that account"))
        try:
            before = os.umask(0o077)
            try:
                with self._configuration.open("x", encoding="utf-8") as file:
                    file.write(TEXT.format(url=json.dumps(url), mapping=MAPPING))
            finally:
                os.umask(before)
        except OSError as error:
            fail(f"{self._configuration} cannot be written: {reason_of(error)}")
        say(f"{self._configuration}: written")

    def _tell(self, seen: FirstLook) -> None:
        say(
            "It answers." if seen.tables is None else f"It answers, and shows {seen.tables} tables."
        )
        say(*(f"Note: {sentence}, which the gateway does not need." for sentence in seen.excess))
        if seen.tables is None and not self._mapping.exists():
            fail(
                "Its tables cannot be listed, so no mapping can be drafted: write"
                f" {self._mapping} by hand (docs/smallest-mapping.md), and run this again."
            )
        if seen.tables == 0:
            fail("The account sees no table: grant it SELECT, as shown above, and run this again.")

    def _loaded(self) -> MappingFile | None:
        """Returns the mapping; None where the check has to say what is wrong with it."""
        from adapters.documents.problems import DocumentErrors

        try:
            return load_mapping(self._mapping, shapes(), self._run.settings.backend.adapter)[0]
        except DocumentErrors:
            return None

    def _permissions(self) -> list[Permission]:
        """Returns the permissions that the mapping has something for."""
        mapping = self._loaded()
        if mapping is None:
            return list(Permission)
        have = {*mapping.resources}.union(["slots"] if mapping.offers("diary") else [])
        calls = offered(have, books=mapping.offers("booking"))
        return list(dict.fromkeys(call.permission for call in calls))

    def _typed(self, *words: str, may_fail: bool = False) -> int:
        """Runs another command as if it had been typed; returns its exit code."""
        from gateway.cli import main

        say(f"$ clinic-gateway {shlex.join(words)}", "")
        arguments = ["--config", str(self._configuration), *words]
        code = main.main(arguments, prog_name="clinic-gateway", standalone_mode=False) or 0
        if code and not may_fail:
            raise click.exceptions.Exit(code)
        return int(code)

    async def _kept(self) -> str | None:
        async with self._run.store(may_begin=True) as store:
            return await store.meta(SOUND)

    async def _keep(self, mark: str) -> None:
        async with self._run.store(may_begin=True) as store:
            await store.set_meta(SOUND, mark)

    async def _has_keys(self) -> bool:
        async with self._run.store(may_begin=True) as store:
            return bool((await KeyStore(store).list()).keys)

    async def _has_administrators(self) -> bool:
        async with self._run.store(may_begin=True) as store:
            return bool(await AdministratorStore(store).list())


def _asked(question: str, default: str, read: Callable[[str], object]) -> str:
    """Returns an answer that can be read, or the default, if any; from a pipe the next line."""
    while True:
        if sys.stdin.isatty():
            answer = str(click.prompt(question, default=default or None)).strip()
        else:
            say(f"{question} [{default}]:" if default else f"{question}:")
            line = sys.stdin.buffer.readline(LONGEST_LINE)
            if not line:
                fail("Nobody answers. Run `clinic-gateway init` again: it goes on here.")
            answer = line.decode("utf-8", "replace").strip() or default
        try:
            read(answer)
        except (ValueError, click.UsageError) as error:
            if not sys.stdin.isatty():
                fail(f"{answer}: {error}")
            say(f"{answer}: {error}")
        else:
            return answer


def _agreed(question: str) -> bool:
    return _asked(f"{question} yes or no", "yes", _yes_or_no) in ("yes", "y")


def _yes_or_no(text: str) -> None:
    if text not in ("yes", "y", "no", "n"):
        raise ValueError("answer yes or no")


def _permissions(text: str) -> Sequence[Permission]:
    return [Permission(word) for word in text.split()]


def _level(text: str) -> None:
    if text not in LEVELS:
        raise ValueError(f"write one of {', '.join(LEVELS)}")
