"""The lines of the audit are sealed one by one, by keys that are read strictly."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.audit.chains import audit_folder
from gateway.audit.entries import (
    AuditSecret,
    ChainHead,
    key_file,
    newest_secret,
    read_secrets,
    rotate,
    seal,
    secrets_at_start,
    unseal,
)
from gateway.settings import StartRefused, load_settings


def test_processes_that_begin_at_once_have_one_key(tmp_path: Path) -> None:
    path = tmp_path / "audit.key"
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: secrets_at_start(path, may_make=True), range(16)))
    assert len(set(made)) == 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["audit.key"]


def test_a_key_that_is_gone_is_not_made_anew_by_a_start(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="is gone: put it back from a backup"):
        secrets_at_start(tmp_path / "audit.key", may_make=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("ab" * 31, "must be 64 hexadecimal digits"),
        ("ab" * 32 + "\nzz", "must be 64 hexadecimal digits"),
        ("é", "it is no ascii text"),
    ],
)
def test_what_is_no_key_is_said_to_be_none(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "audit.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(StartRefused, match=said):
        read_secrets(path)


def test_a_rotation_keeps_the_former_keys_and_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "audit.key"
    first = secrets_at_start(path, may_make=True)
    newest = newest_secret(path, first[0])
    new = rotate(path)
    assert read_secrets(path) == (new, *first)
    assert newest() == new
    # a file that cannot be read, or is spoilt, leaves the known key in place
    path.write_text("spoilt")
    assert newest() == new
    path.unlink()
    assert newest() == new
    assert first[0].value.hex() not in first[0].id


def test_paths_count_from_the_folder_of_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("state: s\naudit: {folder: a, key_file: k, keep_days: 7}\n")
    settings = load_settings(config, {})
    assert audit_folder(settings) == tmp_path / "a"
    assert key_file(settings) == tmp_path / "k"
    plain = load_settings(None, {"GATEWAY_STATE": str(tmp_path / "s")})
    assert audit_folder(plain) == tmp_path / "s" / "audit"
    assert key_file(plain) == tmp_path / "s" / "audit.key"


def test_each_line_follows_the_one_before() -> None:
    secret, other = AuditSecret(os.urandom(32)), AuditSecret(os.urandom(32))
    objects = [b'{"a":%d}' % number for number in range(20)]
    data, end = seal(objects, ChainHead(), secret)
    more, last = seal(objects, end, secret)
    assert seal(objects * 2, ChainHead(), secret) == (data + more, last)
    head = ChainHead()
    for line in (data + more).splitlines(keepends=True):
        assert unseal(line, head, other) is None
        following = unseal(line, head, secret)
        assert following is not None
        head = following
    assert head == last
    assert (end.seq, last.seq) == (20, 40)
