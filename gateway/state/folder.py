"""The state folder: where the gateway keeps what is its own."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.settings import Settings, StartRefused
from gateway.store import Store, open_store

LOCK = "gateway.lock"
# What the processes of a gateway need as long as they run.
RUN = "run"
ELSEWHERE = "end it, or give this one a state of its own"


def open_own_store(settings: Settings) -> Store:
    """The gateway's own database; nothing is made."""
    return open_store(store_place(settings))


def make_folder(state: Path) -> Path:
    """The state folder, made where it is not there."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(
            f"the state folder {state} cannot be made: {reason}; choose another state"
        ) from error
    return state


def make_run(state: Path) -> Path:
    """The folder of what the processes share; StartRefused where others can put something there.

    From there workers take the policy, and operations hears what the workers tell.
    """
    run = state / RUN
    try:
        run.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(f"the folder {run} cannot be made: {reason}", "state") from error
    found = run.lstat()
    others = stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or others:
        raise StartRefused(
            f"{run} is another user's, or others can write there: remove it, and chmod 700 {state}",
            "state",
        )
    return run


def store_place(settings: Settings) -> str | Path:
    """The address or the file of the gateway's own database."""
    return settings.store.get_secret_value() if settings.store else settings.state / "gateway.db"


@contextmanager
def sole_use(folder: Path, who: str = "another gateway", remedy: str = ELSEWHERE) -> Iterator[None]:
    """Holds the folder's lock meanwhile; StartRefused where a gateway holds it.

    Two on one ledger would take each other's bookings for left behind, and count every limit twice.
    Where nothing can be locked nobody can tell, and it counts as free. StartRefused too where the
    lock is a file of somebody else's, such as root's who has served here once.
    """
    path = folder / LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        if isinstance(error, PermissionError) and os.access(folder, os.W_OK, effective_ids=True):
            raise StartRefused(
                f"{path} is not this user's, so that nobody can tell whether {who} serves from"
                f" {folder}: give all files there to the gateway's user (chown), or run this as it",
                "state",
            ) from error
        yield
        return
    try:
        if _is_held(lock):
            raise StartRefused(f"{who} serves from the state folder {folder}: {remedy}", "state")
        yield
    finally:
        os.close(lock)


def _is_held(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def open_to_others(folder: Path) -> bool:
    """Whether anyone but its owner has a right to the folder."""
    return bool(folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def hand_over(folder: Path) -> None:
    """Give what root made in the folder to its owner: the gateway has to read it.

    That account may exchange files meanwhile: each is opened, and given by its descriptor.
    """
    if os.geteuid() != 0 or not folder.is_dir() or folder.stat().st_uid == 0:
        return
    owner = folder.stat()
    for _, folders, files, at in os.fwalk(folder):
        for name in (*folders, *files):
            with suppress(OSError):  # a link, a socket, or gone
                _give(name, at, owner)


def _give(name: str, at: int, owner: os.stat_result) -> None:
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    try:
        found = os.fstat(file)
        is_file = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if found.st_uid == 0 and (is_file or stat.S_ISDIR(found.st_mode)):
            os.fchown(file, owner.st_uid, owner.st_gid)
    finally:
        os.close(file)
