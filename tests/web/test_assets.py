"""The files of the page for partners, as they are served."""

import asyncio
import gzip
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
import pytest_asyncio

from gateway import assets
from gateway.assets import ASK_AGAIN, FOR_GOOD, StaticFile, accepts_gzip
from gateway.web import documents
from gateway.web.documents import FILES, GUIDE_HEADERS
from tests.conftest import RunningGateway

pytestmark = pytest.mark.asyncio(loop_scope="module")
FOLDER = Path(documents.__file__).parent / "static"


@pytest_asyncio.fixture(loop_scope="module")
async def raw() -> AsyncIterator[aiohttp.ClientSession]:
    """Asks for no coding by itself, and unpacks nothing."""
    async with aiohttp.ClientSession(
        auto_decompress=False, skip_auto_headers=["Accept-Encoding"]
    ) as opened:
        yield opened


def on_disk(name: str) -> bytes:
    return FILES[name][0].path.read_bytes()


@pytest.mark.parametrize("name", FILES)
async def test_a_file_is_served_whole_or_packed_with_its_type(
    lasting_gateway: RunningGateway, raw: aiohttp.ClientSession, name: str
) -> None:
    url = f"{lasting_gateway.base}/docs/{name}"
    for wanted in ("gzip, deflate, br", "identity", "gzip;q=0", None):
        headers = {} if wanted is None else {"Accept-Encoding": wanted}
        async with raw.get(url, headers=headers) as answer:
            body = await answer.read()
        packed = wanted is not None and wanted.startswith("gzip,")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == FILES[name][1]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Vary"] == "X-API-Key, Accept-Encoding"
        assert answer.headers.get("Content-Encoding") == ("gzip" if packed else None)
        assert (gzip.decompress(body) if packed else body) == on_disk(name)
        async with raw.head(url, headers=headers) as head:
            assert head.headers["Content-Length"] == str(len(body))
            assert await head.read() == b""


async def test_what_the_page_names_may_be_kept_for_good_and_nothing_else(
    lasting_gateway: RunningGateway, raw: aiohttp.ClientSession
) -> None:
    async with raw.get(f"{lasting_gateway.base}/docs") as answer:
        page = await answer.text()
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert answer.headers["Vary"] == "X-API-Key"
    for name, value in GUIDE_HEADERS.items():
        assert answer.headers[name] == value
    named = re.findall(r'(?:src|href)="(docs/[^"]+\?v=[^"]+)"', page)
    assert {each.partition("?")[0].removeprefix("docs/") for each in named} == FILES.keys()
    for each in named:
        for query, cache in (("", FOR_GOOD), ("0", ASK_AGAIN)):
            async with raw.get(f"{lasting_gateway.base}/{each}{query}") as asset:
                assert asset.status == 200
                assert asset.headers["Cache-Control"] == cache


async def test_each_file_is_packed_once_however_many_ask_at_once(
    lasting_gateway: RunningGateway, raw: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[bytes] = []

    def counted(body: bytes, mtime: int) -> bytes:
        packed.append(body)
        time.sleep(0.05)
        return body

    async def ask(path: str) -> None:
        async with raw.get(f"{lasting_gateway.base}/{path}") as answer:
            assert answer.status == 200

    monkeypatch.setattr(assets, "gzip", SimpleNamespace(compress=counted))
    files = {name: (StaticFile(file.path), kind) for name, (file, kind) in FILES.items()}
    monkeypatch.setattr(documents, "FILES", files)
    await asyncio.gather(*(ask("docs/docs.js") for _ in range(10)))
    assert packed == [on_disk("docs.js")]
    await ask("docs")
    assert sorted(packed) == sorted(map(on_disk, FILES))


async def test_a_page_that_could_not_be_made_is_made_again(
    lasting_gateway: RunningGateway, raw: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, faults = documents.reference, [MemoryError()]

    def reference(data: documents.Data) -> str:
        if faults:
            raise faults.pop()
        return real(data)

    monkeypatch.setattr(documents, "reference", reference)
    lasting_gateway.gateway.public.front.documents._kept.clear()
    for status in (500, 200):
        async with raw.get(f"{lasting_gateway.base}/docs/reference") as answer:
            assert answer.status == status
    assert answer.content_type == "text/html"


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([], False),
        ([""], False),
        (["gzip"], True),
        (["br, GZIP;q=0.5"], True),
        (["br", "x-gzip"], True),
        (["gzip;q=0"], False),
        (["gzip; q=0.000, br"], False),
        (["gzipped"], False),
    ],
)
async def test_gzip_is_sent_to_those_who_ask_for_it(values: list[str], wanted: bool) -> None:
    assert accepts_gzip(values) is wanted


async def test_each_file_of_the_page_is_in_its_folder_and_is_served_or_vendored() -> None:
    own = {path for path in FOLDER.iterdir() if path.is_file()}
    assert own == {file.path for file, _ in FILES.values() if file.path.parent == FOLDER}
