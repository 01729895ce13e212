"""`make screenshots`: a picture of each page of the panel and of that for partners, in both themes.

They are made of a demo with a few partners that have called. Those that the README shows go to
docs/images, all of them to build/screenshots.
"""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from playwright.async_api import Page

from tests.browser.browser import HEIGHT, Look, launched, opened

ROOT = Path(__file__).parent.parent.parent
OUT, SHOWN = ROOT / "build" / "screenshots", ROOT / "docs" / "images"
README = ("key-light.png", "sees-light.png", "traffic-dark.png")
PASSWORD = "several words to get in"
# Who gets a key, what for, and how often each has called.
PARTNERS = (
    ("Assurance Patte", ("Read animals", "Read invoices"), "STANDARD", 40),
    ("Agenda Véto", ("Read appointments", "Book appointments", "Read clients"), "STANDARD", 120),
    ("Pharmacie du Port", ("Read stock",), "FULL", 25),
    ("Laboratoire Nord", ("Read consultations", "Read animals"), "BASIC", 8),
)
CALLS = {
    "Read animals": "/patients",
    "Read invoices": "/stock",
    "Read appointments": "/appointments/types",
    "Read clients": "/clients",
    "Read stock": "/stock/low",
    "Read consultations": "/consultations/none",
}


@contextmanager
def demo(state: Path) -> Iterator[dict[str, Any]]:
    """A demo, and what it hands over."""
    words = ["demo", "--port", "0", "--operations-port", "0", "--state", str(state), "--json"]
    command = [sys.executable, "-m", "gateway", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)


async def sign_in(page: Page, admin: dict[str, str]) -> None:
    """With the password that lets in once, and then one of one's own."""
    await page.goto(admin["url"])
    await page.fill("#name", admin["name"])
    await page.fill("#password", admin["password"])
    await page.keyboard.press("Enter")
    await page.fill("#new", PASSWORD)
    await page.fill("#again", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/keys")


async def make_keys(page: Page, url: str) -> dict[str, str]:
    """A key for each partner; their secrets."""
    secrets = {}
    for name, rights, level, _ in PARTNERS:
        await page.goto(f"{url}/keys/new")
        await page.fill("#name", name)
        await page.fill("#contact", "01 40 00 00 00")
        for right in rights:
            await page.get_by_label(right).check()
        await page.check(f"input[name=level][value={level}]")
        await page.click("#key-form button[type=submit]:not([name])")
        secrets[name] = await page.locator("#secret").inner_text()
    return secrets


def call(base: str, secrets: dict[str, str]) -> None:
    """What partners do, some of it in vain."""
    for name, rights, _, times in PARTNERS:
        paths = [CALLS[right] for right in rights if right in CALLS]
        for number in range(times):
            address = f"{base}{paths[number % len(paths)]}"
            request = Request(address, headers={"X-API-Key": secrets[name]})
            try:
                urlopen(request, timeout=10).close()
            except HTTPError as refused:
                refused.close()


async def pictures(shown: dict[str, Any]) -> None:
    """Each page, in both themes."""
    admin, base = shown["admin"], shown["base"]
    async with launched() as browser:
        async with opened(browser, Look(), admin["url"]) as watched:
            page = watched.page
            await sign_in(page, admin)
            secrets = await make_keys(page, admin["url"])
            await asyncio.to_thread(call, base, secrets)
            await page.wait_for_timeout(62_000)  # what was called is told by the minute
            await page.goto(f"{admin['url']}/keys")
            key = await page.get_by_role("link", name="Assurance Patte").get_attribute("href")
            cookies = await page.context.cookies()
        pages = {
            "keys": "/keys",
            "key": "/keys/new",
            "card": key or "",
            "sees": f"/preview?key={(key or '').rpartition('/')[2]}&resource=patients",
            "policy": "/policy",
            "traffic": "/traffic",
            "audit": "/audit",
            "who": f"/audit/who?resource=clients&id={shown['ids']['CLIENT']}",
            "directory": "/directory",
            "people": "/people",
            "account": "/account",
        }
        for theme in ("light", "dark"):
            async with opened(browser, Look(theme), admin["url"]) as watched:
                await watched.page.context.add_cookies(cookies)
                for name, path in pages.items():
                    await watched.page.goto(admin["url"] + path)
                    if name == "key":
                        await choose(watched.page)
                    await keep(watched.page, f"{name}-{theme}")
            async with opened(browser, Look(theme), base) as watched:
                await watched.page.goto(f"{base}/docs")
                await watched.page.locator(".opblock").first.wait_for()
                await keep(watched.page, f"docs-{theme}")


async def choose(page: Page) -> None:
    """As somebody who is about to make a key."""
    await page.fill("#name", "Assurance Moustache")
    await page.get_by_label("Read animals").check()
    await page.get_by_label("Read invoices").check()
    await page.check("input[name=level][value=STANDARD]")
    await page.locator("#sees .sight").nth(1).wait_for()


async def keep(page: Page, name: str) -> None:
    """The first screen, and the whole page beside it."""
    await page.wait_for_timeout(400)
    clip = {"x": 0, "y": 0, "width": 1280, "height": HEIGHT}
    await page.screenshot(path=OUT / f"{name}.png", clip=clip)  # type: ignore[arg-type]
    await page.screenshot(path=OUT / f"{name}-whole.png", full_page=True)


def main() -> None:
    """All of them."""
    shutil.rmtree(OUT, ignore_errors=True)
    for folder in (OUT, SHOWN):
        folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, demo(Path(folder) / "demo") as shown:
        asyncio.run(pictures(shown))
    for name in README:
        shutil.copy(OUT / name, SHOWN / name)


if __name__ == "__main__":
    main()
