"""What a backup is made of: copies of files, and its manifest.

The manifest is written last, so that half a backup has none. A copy is whole or not there, on disk,
and for one account alone; nothing is overwritten.
"""

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert

from gateway.audit.chains import Known, sync_folder
from gateway.identity import content_of, reason_of, write_new
from gateway.sealing import has_fingerprint
from gateway.settings import StartRefused
from gateway.settings.kinds import read_sealing_secret

FILE = "manifest.json"
FORMAT = 1
# What a file of a backup is.
STORE, SEALING, CONFIGURATION = "store", "sealing", "configuration"
KEY, AUDIT = "audit key", "audit"
# Bytes that hold the last line of an audit's file, whatever it is.
LONGEST = 128 << 10
# What is not whole yet has such a name.
UNDER_WAY = ".under-way"

Account = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFile:
    """A file of a backup: where it lies in there, and whence it came and goes back to."""

    kind: str
    file: str
    original: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`store` is the store's place, `owner` the name of the account whose the state is.

    `migration` is that of the store, `sealing` the fingerprint of the sealing secret, empty before
    one was used; `chains` are the audit's chains of this folder with their heads.
    """

    identity: str
    made_at: datetime
    version: str
    store: str
    migration: str
    sealing: str
    owner: str
    chains: Sequence[Known]
    files: Sequence[BackupFile]

    @property
    def has_store(self) -> bool:
        """Whether the store itself is in the backup; that of PostgreSQL is not."""
        return any(file.kind == STORE for file in self.files)

    @property
    def configuration(self) -> Path | None:
        """Where the configuration's own file was; None where there was none."""
        for file in self.of_kind(CONFIGURATION):
            if Path(file.file).name.startswith("1-"):
                return Path(file.original)
        return None

    def of_kind(self, *kinds: str) -> Iterator[BackupFile]:
        """The files of these kinds, in the order of the kinds."""
        yield from (file for kind in kinds for file in self.files if file.kind == kind)


def backup_file(kind: str, folder: Path, file: Path, original: Path) -> BackupFile:
    """A file of the backup in that folder, as it is. OSError."""
    with file.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    name, size = str(file.relative_to(folder)), file.stat().st_size
    # a setting such as ../state leaves dots in the path
    place = os.path.abspath(original)  # noqa: PTH100 - links stay as they are named
    return BackupFile(kind=kind, file=name, original=place, size=size, sha256=digest)


def write(folder: Path, manifest: Manifest) -> None:
    """Complete a backup. OSError."""
    data = asdict(manifest) | {"format": FORMAT}
    write_new(folder / FILE, json.dumps(data, indent=2, default=_written) + "\n")


def _written(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    return value.hex() if isinstance(value, bytes) else str(value)


def read(folder: Path) -> Manifest:
    """The manifest of a backup; StartRefused where there is none, or one that makes no sense."""
    path = folder / FILE
    try:
        data = json.loads(path.read_text("utf-8"))
        if data.pop("format") != FORMAT:
            raise StartRefused(f"{path} is of another version of the gateway: use that version")
        for chain in data["chains"]:
            for head in (chain["head"], chain["base"]):
                head["mac"] = bytes.fromhex(head["mac"])
        found = convert(data, Manifest, builtin_types=(bytes,))
    except FileNotFoundError as error:
        raise StartRefused(
            f"{folder} is no whole backup: it has no {FILE}, which is written last; name another"
        ) from error
    except OSError as error:
        raise StartRefused(f"{path} cannot be read: {reason_of(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        raise StartRefused(f"{path} is not as it was written: use another backup") from error
    lead_out = any(
        ".." in (*Path(file.file).parts, *Path(file.original).parts)
        or Path(file.file).is_absolute()
        or not Path(file.original).is_absolute()
        for file in found.files
    )
    times = (found.made_at, *(chain.begun for chain in found.chains))
    if lead_out or any(time.tzinfo is None for time in times):
        raise StartRefused(f"{path} is not as it was written: use another backup")
    return found


def is_secret(path: Path, fingerprint: str) -> bool | None:
    """Whether the file holds the sealing secret of that fingerprint; None where it holds none."""
    try:
        secret = read_sealing_secret(content_of(path.read_text("ascii")))
    except (OSError, ValueError):
        return None
    return not fingerprint or has_fingerprint(secret, fingerprint)


def new_folder(folder: Path) -> None:
    """A folder of its owner's alone; StartRefused where there is something in it already."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StartRefused(f"{folder} is not empty: name a new folder, nothing is overwritten")
        folder.chmod(0o700)
    except OSError as error:
        raise StartRefused(f"the folder {folder} cannot be made: {reason_of(error)}") from error


def copy_file(
    source: Path, target: Path, account: Account | None = None, *, lines: bool = False
) -> None:
    """A copy, owned by that account where it is given. OSError, which names what failed.

    With `lines` it has whole lines alone: somebody may be writing the last one.
    """
    beside = target.with_name(f"{secrets.token_hex(4)}{UNDER_WAY}")
    try:
        file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "r+b") as stream:
            for piece in _pieces(source):
                stream.write(piece)
            if lines:  # what follows the last whole line goes
                size = stream.seek(0, os.SEEK_END)
                start = stream.seek(max(0, size - LONGEST))
                stream.truncate(start + stream.read().rfind(b"\n") + 1)
            stream.flush()
            if account is not None:
                os.fchown(stream.fileno(), *account)
            os.fsync(stream.fileno())
        os.link(beside, target)
        sync_folder(target.parent)
    except OSError as error:
        # what is written has another name so far, or the system names none
        if error.filename in (None, str(beside), beside):
            error.filename = str(target)
        raise
    finally:
        with suppress(OSError):
            beside.unlink()


def _pieces(source: Path) -> Iterator[bytes]:
    """What it holds. OSError, which names it."""
    try:
        with source.open("rb") as given:
            while piece := given.read(1 << 20):
                yield piece
    except OSError as error:
        error.filename = str(source)
        raise


def tidy(folder: Path) -> None:
    """What a copy left that was cut off goes. OSError."""
    for path in folder.glob(f"*{UNDER_WAY}"):
        path.unlink(missing_ok=True)
