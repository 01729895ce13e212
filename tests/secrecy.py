"""Looks for secrets where none may be: what every test that runs a gateway is searched by."""

import re
from pathlib import Path

from gateway.identity import content_of
from gateway.keys.secret import FORM, well_formed

SEALING = "sealing.secret"
# one may begin within another text that looks like one: such as a cursor, by chance
_like_one = re.compile(rf"(?=({FORM}))".encode()).findall


def secrets_in(content: bytes) -> list[bytes]:
    """The secrets of keys in it: what has their form, and their checksum."""
    return [each for each in _like_one(content) if well_formed(each.decode())]


def kept(folder: Path) -> dict[str, bytes]:
    """All that a gateway wrote, by file; the clinic's own database is the clinic's."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith("clinic.db")
    }


def secrets_at_rest(folder: Path) -> list[str]:
    """The files that hold the secret of a key, or that of the seal where it does not belong."""
    files = kept(folder)
    sealing = content_of(files.pop(SEALING, b"").decode()).strip().encode()
    seals = [sealing, bytes.fromhex(sealing.decode())] if sealing else []
    return [
        name
        for name, content in files.items()
        if secrets_in(content) or any(each in content for each in seals)
    ]
