"""Somebody with a browser, without the browser: signs in to a panel, and sends its forms."""

import asyncio
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import aiohttp
from argon2 import PasswordHasher
from yarl import URL

from gateway.administrators.administrator import AdministratorStore, Role
from gateway.administrators.passwords import AttemptLimiter, of_name
from gateway.store import Store
from tests.waiting import GENEROUS

PASSWORD = "correct horse battery staple"
# A hash says itself how dear it is: this one is cheap, so that many tests may sign in.
CHEAP = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
KEPT = CHEAP.hash(PASSWORD)


@dataclass
class Page:
    """One answer, read whole."""

    status: int
    headers: Any
    text: str
    url: URL

    @property
    def heading(self) -> str:
        """What its first heading says."""
        found = re.search(r"<h1[^>]*>(.*?)</h1>", self.text, re.DOTALL)
        return "" if found is None else _plain(found[1])

    @property
    def plain(self) -> str:
        """What there is to read, without marks."""
        return _plain(self.text)

    @property
    def csrf(self) -> str:
        """The token that its forms hold; "" where there is none."""
        found = re.search(r'name="csrf" value="([^"]*)"', self.text)
        return "" if found is None else found[1]

    def field(self, name: str) -> str:
        """The value of a hidden field or an input."""
        found = _Fields(self.text).values.get(name)
        assert found is not None, f"no field {name}"
        return found


class _Fields(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "input" and found.get("name"):
            self.values.setdefault(found["name"] or "", found.get("value") or "")


def _plain(text: str) -> str:
    class Reader(HTMLParser):
        said = ""

        def handle_data(self, data: str) -> None:
            self.said += data

    reader = Reader()
    reader.feed(text)
    return " ".join(reader.said.split())


@dataclass
class Manager:
    """An administrator of one gateway; `base` is the panel's address."""

    base: str
    session: aiohttp.ClientSession
    name: str = "Claire"
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    def other(self, name: str = "") -> "Manager":
        """Somebody else at the same panel, with a browser of their own."""
        return Manager(self.base, self.session, name or self.name, dict(self.headers))

    async def get(self, path: str, **headers: str) -> Page:
        """A page, without following where it leads."""
        return await self._ask("GET", path, headers)

    async def send(self, path: str, form: dict[str, Any] | bytes, **headers: str) -> Page:
        """A form, as a browser sends it from a page of the panel."""
        told = {"Origin": self.base, "Sec-Fetch-Site": "same-origin"}
        return await self._ask("POST", path, told | headers, data=form)

    async def _ask(self, method: str, path: str, headers: dict[str, str], **more: Any) -> Page:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {**self.headers, **({"Cookie": cookies} if cookies else {}), **headers}
        async with self.session.request(
            method, self.base + path, headers=sent, allow_redirects=False, **more
        ) as answer:
            for name, morsel in answer.cookies.items():
                if morsel.value:
                    self.cookies[name] = morsel.value
                else:
                    self.cookies.pop(name, None)
            return Page(answer.status, answer.headers, await answer.text(), answer.url)

    async def fill(self, at: str, form: dict[str, Any], to: str = "") -> Page:
        """The form of a page, with the token that it holds, sent to that path or to another."""
        page = await self.get(at)
        assert page.status == 200, (page.status, page.plain)
        return await self.send(to or at, {"csrf": page.csrf, **form})

    async def sign_in(self, password: str = PASSWORD) -> Page:
        """With the name and that password."""
        page = await self.get("/sign-in")
        form = {"asked": page.field("asked"), "name": self.name, "password": password}
        return await self.send("/sign-in", form)


async def manager_of(
    running: Any,
    session: aiohttp.ClientSession,
    *,
    role: Role = Role.ADMIN,
    name: str = "Claire",
    language: str = "en",
) -> Manager:
    """Somebody of that role, signed in to the panel of a running gateway."""
    panel = running.gateway.panel
    assert panel is not None
    store = AdministratorStore(running.gateway.store)
    if await store.find(name) is None:
        await store.add(name, role, KEPT, datetime.now(UTC), one_time=False)
    manager = Manager(panel.url, session, name, {"Accept-Language": language})
    page = await manager.sign_in()
    assert page.status == 303, page.plain
    return manager


async def guessed(store: Store, name: str, times: int) -> None:
    """Strangers try so many passwords at that name, from now on, each once it may be tried."""
    await tried(store, of_name(name), times)


async def tried(store: Store, subject: str, times: int) -> None:
    """So many passwords that count together are tried, from now on, each once it may be."""
    failures, at, done = AttemptLimiter(store), datetime.now(UTC), 0
    while done < times:
        wait = await failures.try_now(subject, at)
        at += wait
        done += not wait


async def after(manager: Manager, path: str, running: str) -> Page:
    """The page once what goes on in the background has ended."""
    async with asyncio.timeout(GENEROUS):
        while running in (page := await manager.get(path)).plain:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # as a browser asks again
    return page
