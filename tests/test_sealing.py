from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.sealing import FILE, META, sealing_secret
from gateway.settings import BackendSettings, Settings, StartRefused, load_settings
from gateway.store import open_store


class Shelf:
    """The store's shelf, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def meta(self, name: str) -> str | None:
        return self.kept.get(name)

    async def set_meta_once(self, name: str, value: str) -> str:
        return self.kept.setdefault(name, value)


def settings(tmp_path: Path, **backend: object) -> Settings:
    loaded = load_settings(None, {})
    return loaded.model_copy(update={"state": tmp_path, "backend": BackendSettings(**backend)})


async def test_it_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    shelf = Shelf()
    first = await sealing_secret(settings(tmp_path), shelf)
    assert len(first) == 32
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert await sealing_secret(settings(tmp_path), shelf) == first
    assert first.hex() not in shelf.kept[META]


async def test_another_one_is_refused_since_every_public_id_would_change(tmp_path: Path) -> None:
    shelf = Shelf()
    await sealing_secret(settings(tmp_path), shelf)
    other = settings(tmp_path, secret=SecretStr("ab" * 32))
    with pytest.raises(StartRefused, match="every public id would change"):
        await sealing_secret(other, shelf)


@pytest.mark.parametrize("kept", ["", "0" * 32, "é", "\ud800"])
async def test_a_fingerprint_of_no_secret_is_refused(tmp_path: Path, kept: str) -> None:
    shelf = Shelf()
    await sealing_secret(settings(tmp_path), shelf)
    shelf.kept[META] = kept
    with pytest.raises(StartRefused, match="every public id would change"):
        await sealing_secret(settings(tmp_path), shelf)


async def test_one_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    shelf = Shelf()
    await sealing_secret(settings(tmp_path), shelf)
    (tmp_path / FILE).unlink()
    with pytest.raises(StartRefused, match=r"is gone.*put the file back"):
        await sealing_secret(settings(tmp_path), shelf)
    assert not (tmp_path / FILE).exists()


async def test_the_same_secret_may_come_from_anywhere(tmp_path: Path) -> None:
    shelf = Shelf()
    file = tmp_path / "elsewhere"
    file.touch(mode=0o600)
    file.write_text("AB" * 32 + "\n")
    given = await sealing_secret(settings(tmp_path, secret_file=file), shelf)
    assert given == await sealing_secret(settings(tmp_path, secret=SecretStr("ab" * 32)), shelf)


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        ("ab" * 32, 0o644, "chmod 600"),
        ("ab" * 32, 0o660, "chmod 600"),
        ("ab" * 31, 0o600, "must be 64 hexadecimal digits"),
        ("é", 0o600, "it is no ascii text"),
        (None, 0o600, "no such file"),
    ],
)
async def test_a_file_that_is_open_or_broken_is_refused(
    tmp_path: Path, content: str | None, mode: int, problem: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    with pytest.raises(StartRefused, match=problem) as raised:
        await sealing_secret(settings(tmp_path, secret_file=file), Shelf())
    assert str(content) not in str(raised.value)


async def test_its_fingerprint_rests_in_the_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/gateway.db")
    await store.migrate()
    await sealing_secret(settings(tmp_path), store)
    assert len(await store.meta(META) or "") == 32
    await store.aclose()
