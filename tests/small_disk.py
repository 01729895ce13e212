"""A disk of a few mebibytes, for those who want to fill one."""

import ctypes
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_libc = ctypes.CDLL(None, use_errno=True)
_DETACH = 2


@contextmanager
def mounted(folder: Path, mebibytes: int) -> Iterator[Path]:
    """A filesystem of its own in that folder, which is made; the test is skipped without root."""
    folder.mkdir()
    size = f"size={mebibytes}m".encode()
    if _libc.mount(b"none", str(folder).encode(), b"tmpfs", 0, size):
        pytest.skip("only root can mount a small disk here")
    try:
        yield folder
    finally:
        _libc.umount2(str(folder).encode(), _DETACH)


def fill(disk: Path) -> Path:
    """Leave no room on it; the file that takes it all."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="space"):
        _write_for_ever(file)
    return filler


def _write_for_ever(file: io.RawIOBase) -> None:
    while True:
        file.write(bytes(4096))
