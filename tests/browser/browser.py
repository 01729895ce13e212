"""A browser for the tests of pages: Debian's Chromium, told what to look like, and listened to."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, Request, async_playwright

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
HEIGHT = 900
# The first has no windows to draw, and takes two thirds of the other's time.
PROGRAMS = ("chromium-headless-shell", "chromium")
# What axe asks of colours, which alone hangs on the theme.
CONTRAST = ("color-contrast",)
# Milliseconds that a page may take for what it is asked.
PATIENCE = 10_000


@dataclass(frozen=True)
class Look:
    """How a page is shown: what the reader's system prefers, and how wide the window is."""

    theme: str = "light"
    width: int = 1280
    language: str = "en"

    def __str__(self) -> str:
        return f"{self.theme}-{self.width}-{self.language}"

    @property
    def scheme(self) -> Literal["dark", "light"]:
        """The theme, as a browser takes it."""
        return "dark" if self.theme == "dark" else "light"


# Each width in both themes, one after the other.
LOOKS = tuple(Look(theme, width) for width in (1280, 360) for theme in ("light", "dark"))


@dataclass
class Watched:
    """A page, and what went wrong on it: errors in the console, and requests to other places.

    What a page's own policy forbids is an error in the console.

    `troubles` are those that nobody expected.
    """

    page: Page
    host: str
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, text: str) -> None:
        """An error with that text is no trouble."""
        self.expected.append(text)

    @property
    def troubles(self) -> list[str]:
        elsewhere = [f"asked for {each}" for each in self.requests if self._is_elsewhere(each)]
        errors = [each for each in self.errors if not any(text in each for text in self.expected)]
        return elsewhere + errors

    def _is_elsewhere(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme not in {"data", "blob"} and parts.netloc != self.host

    def hear(self) -> None:
        """From now on."""
        self.page.on("request", self._asked)
        self.page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        self.page.on(
            "console",
            lambda said: self.errors.append(said.text) if said.type == "error" else None,
        )

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    async def violations(
        self, *, without: Iterable[str] = (), only: Sequence[str] = ()
    ) -> list[str]:
        """What axe finds on the page as it is, by `only` some rules: each, with where and why.

        The runner gets in beside the page's policy, which need not allow it.
        """
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(_axe())
        rules = {rule: {"enabled": False} for rule in without}
        found = await self.page.evaluate(
            "([rules, only]) => axe.run(document, {rules, resultTypes: ['violations'],"
            " ...(only.length ? {runOnly: {type: 'rule', values: only}} : {})})",
            [rules, list(only)],
        )
        return [_told(rule, node) for rule in found["violations"] for node in rule["nodes"]]

    async def settles(self, condition: str) -> None:
        """Wait until that holds on the page, whose policy forbids that it looks by itself."""
        until = time.monotonic() + PATIENCE / 1000
        while not await self.page.evaluate(condition):
            assert time.monotonic() < until, f"{self.page.url}: never {condition}"
            await asyncio.sleep(0.02)

    async def violations_in_looks(self) -> list[str]:
        """The same on a desk and on a telephone, in both themes; the other theme is other colours.

        What is wider than the window, and does not scroll by itself, is one too.
        """
        found: list[str] = []
        for look in LOOKS:
            await self.page.set_viewport_size({"width": look.width, "height": HEIGHT})
            await self.page.emulate_media(color_scheme=look.scheme)
            # until no colour is on its way to another
            await self.settles(
                "document.getAnimations().every(each => !(each instanceof CSSTransition))"
            )
            await self.settles(f"document.documentElement.scrollWidth <= {look.width}")
            only = () if look.theme == LOOKS[0].theme else CONTRAST
            found += [
                f"{look.theme}, {look.width}: {each}" for each in await self.violations(only=only)
            ]
        return found


@cache
def _axe() -> str:
    return AXE.read_text()


def _told(rule: dict[str, Any], node: dict[str, Any]) -> str:
    why = " ".join(node["failureSummary"].split())
    return f"{rule['id']}: {' '.join(map(str, node['target']))}: {why}"


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """A browser; a skip where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"install Chromium (apt-get install {PROGRAMS[0]} fonts-dejavu-core)")
    # its sandbox does not work for root
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def opened(
    browser: Browser, look: Look, base: str, *, scripts: bool = True
) -> AsyncIterator[Watched]:
    """An empty page of its own, without anything of other pages; no trouble at its end.

    `base` is an address on the only host that it may ask.
    """
    context = await browser.new_context(
        viewport={"width": look.width, "height": HEIGHT},
        color_scheme=look.scheme,
        locale=look.language,
        reduced_motion="reduce",
        java_script_enabled=scripts,
    )
    try:
        context.set_default_timeout(PATIENCE)
        watched = Watched(await context.new_page(), urlsplit(base).netloc)
        watched.hear()
        yield watched
        if watched.troubles:
            pytest.fail("\n".join(watched.troubles))
    finally:
        await context.close()
