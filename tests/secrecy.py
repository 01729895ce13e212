"""Looks for secrets where none may be: what every test that runs a gateway is searched by."""

import re
from pathlib import Path

secrets_in = re.compile(rb"vk_[A-Za-z0-9_-]{48}").findall
SEALING = "sealing.secret"


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
    sealing = files.pop(SEALING, b"").strip()
    seals = [sealing, bytes.fromhex(sealing.decode())] if sealing else []
    return [
        name
        for name, content in files.items()
        if secrets_in(content) or any(each in content for each in seals)
    ]
