"""The state folder: where the gateway keeps what is its own."""

import stat
from pathlib import Path

from gateway.settings import Settings, StartRefused
from gateway.store import Store, open_store


def open_own_store(settings: Settings) -> Store:
    """The gateway's own database, its folder made where it is not there."""
    try:
        settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(
            f"the state folder {settings.state} cannot be made: {reason}; choose another state"
        ) from error
    return open_store(store_place(settings))


def store_place(settings: Settings) -> str | Path:
    """The address or the file of the gateway's own database."""
    return settings.store.get_secret_value() if settings.store else settings.state / "gateway.db"


def open_to_others(folder: Path) -> bool:
    """Whether anyone but its owner has a right to the folder."""
    return bool(folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
