"""What a backup is made of: its manifest, which is written last, so that half a backup has none."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert

from gateway.audit.chains import Known
from gateway.audit.entries import ChainHead
from gateway.identity import write_new
from gateway.settings import StartRefused

FILE = "manifest.json"
FORMAT = 1
# What a file of a backup is.
STORE, SEALING, CONFIGURATION = "store", "sealing", "configuration"
KEY, AUDIT = "audit key", "audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
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
    files: Sequence[Kept]

    @property
    def has_store(self) -> bool:
        """Whether the store itself is in the backup; that of PostgreSQL is not."""
        return any(each.kind == STORE for each in self.files)

    @property
    def configuration(self) -> Path | None:
        """Where the configuration's own file was; None where there was none."""
        own = (each for each in self.of_kind(CONFIGURATION) if Path(each.file).name[:2] == "1-")
        return next((Path(each.original) for each in own), None)

    def of_kind(self, *kinds: str) -> Iterator[Kept]:
        """The files of these kinds, in the order of the kinds."""
        yield from (each for kind in kinds for each in self.files if each.kind == kind)


def kept(kind: str, folder: Path, file: Path, original: Path) -> Kept:
    """A file of the backup in that folder, as it is. OSError."""
    with file.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    name, size = str(file.relative_to(folder)), file.stat().st_size
    # a setting such as ../state leaves dots in the path
    place = os.path.abspath(original)  # noqa: PTH100 - links stay as they are named
    return Kept(kind=kind, file=name, original=place, size=size, sha256=digest)


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
        return _manifest(data)
    except FileNotFoundError as error:
        raise StartRefused(
            f"{folder} is no whole backup: it has no {FILE}, which is written last; name another"
        ) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(f"{path} cannot be read: {reason}") from error
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        raise StartRefused(f"{path} is not as it was written: use another backup") from error


def _manifest(data: Mapping[str, Any]) -> Manifest:
    found = Manifest(
        **{
            **data,
            "sealing": data["sealing"],
            "made_at": _moment(data["made_at"]),
            "chains": [_chain(each) for each in data["chains"]],
            "files": [_inside(Kept(**each)) for each in data["files"]],
        }
    )
    # a member of another kind, such as a number for a text, is a ValidationError
    return convert(asdict(found), Manifest, builtin_types=(bytes, datetime, date))


def _moment(text: str) -> datetime:
    """ValueError for a time that does not tell its offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment


def _inside(file: Kept) -> Kept:
    """ValueError where it is no file of the backup's own."""
    path, original = Path(file.file), Path(file.original)
    if path.is_absolute() or not original.is_absolute() or ".." in (*path.parts, *original.parts):
        raise ValueError(file.file)
    return file


def _chain(data: Mapping[str, Any]) -> Known:
    return Known(
        **{
            **data,
            "begun": _moment(data["begun"]),
            "head": _head(data["head"]),
            "base": _head(data["base"]),
            "dropped": date.fromisoformat(data["dropped"]) if data["dropped"] else None,
        }
    )


def _head(data: Mapping[str, Any]) -> ChainHead:
    return ChainHead(data["seq"], bytes.fromhex(data["mac"]))
