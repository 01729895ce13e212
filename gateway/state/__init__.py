"""Opens the gateway's own state: the store, the audit and the secrets, which belong together.

All parts are checked before anything is made.
"""

import fcntl
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from gateway.booking.takeover import RUN
from gateway.contract.fields import write_instant
from gateway.identity import META, reason_of, write_identity
from gateway.keys.store import KeyStore
from gateway.sealing import is_own_secret, make_file
from gateway.settings import Settings, StartRefused
from gateway.state.integrity import StateParts, checked_parts
from gateway.store import Store, open_store
from gateway.store.base import HEAD

LOCK = "gateway.lock"
ELSEWHERE = "end it, or give this one a state of its own"
# A clock outside of these is wrong: this program is younger, and nobody will run it so late.
FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
# How far a clock may be behind the latest time that the store has seen: it catches up by itself.
BEHIND = timedelta(days=1)


def store_place(settings: Settings) -> str | Path:
    """Returns the address or the file of the gateway's own database."""
    return settings.store.get_secret_value() if settings.store else settings.state / "gateway.db"


def open_own_store(settings: Settings) -> Store:
    """Returns the gateway's own database; nothing is made."""
    return open_store(store_place(settings))


def make_folder(state: Path) -> Path:
    """Makes the state folder where it does not exist; raises StartRefused where that fails."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        text = f"the state folder {state} cannot be made: {reason_of(error)}; choose another state"
        raise StartRefused(text) from error
    return state


def make_run(state: Path) -> Path:
    """Makes the folder that processes share; raises StartRefused where others can write there."""
    run = state / RUN
    try:
        run.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        text = f"the folder {run} cannot be made: {reason_of(error)}"
        raise StartRefused(text, "state") from error
    status = run.lstat()
    others = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or others:
        raise StartRefused(
            f"{run} is another user's, or others can write there: remove it, and chmod 700 {state}",
            "state",
        )
    return run


@contextmanager
def sole_use(folder: Path, who: str = "another gateway", remedy: str = ELSEWHERE) -> Iterator[None]:
    """Holds the lock of the state folder; raises StartRefused where a gateway holds it already.

    Two gateways on one state would take over each other's bookings, and count every limit twice.
    A file system without locks counts as free. Raises StartRefused too where the lock file belongs
    to another user, such as to root after serving as root.
    """
    path = folder / LOCK
    with ExitStack() as stack:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, lock)
            with suppress(PermissionError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            text = f"{who} serves from the state folder {folder}: {remedy}"
            raise StartRefused(text, "state") from error
        except PermissionError as error:
            if os.access(folder, os.W_OK, effective_ids=True):
                raise StartRefused(
                    f"{path} is not this user's, so that nobody can tell whether {who} serves from"
                    f" {folder}: give all files there to the gateway's user (chown), or run this as"
                    " it",
                    "state",
                ) from error
        except OSError:
            pass
        yield


def hand_over(folder: Path) -> None:
    """Gives what root made in a folder to its owner, by descriptor, as names may be exchanged."""
    if os.geteuid() != 0 or not folder.is_dir() or (owner := folder.stat()).st_uid == 0:
        return
    for _, folders, files, at in os.fwalk(folder):
        for name in (*folders, *files):
            with suppress(OSError), ExitStack() as stack:  # a link, a socket, or gone
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
                stack.callback(os.close, file)
                status = os.fstat(file)
                is_file = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
                if status.st_uid == 0 and (is_file or stat.S_ISDIR(status.st_mode)):
                    os.fchown(file, owner.st_uid, owner.st_gid)


async def begin_state(settings: Settings, store: Store) -> None:
    """Makes a new state, or gives one of an earlier version its identity.

    Raises StartRefused where its parts do not belong together or one is gone, and StoreError.
    """
    parts = await _migrated(settings, store, make=True)
    identity = await store.set_meta_once(META, parts.identity or str(uuid4()))
    for part in parts.files:
        # a part from before states had identities gets that of its state
        if not part.is_kept or part.identity:
            continue
        if part is parts.secret and not await is_own_secret(settings, store):
            continue
        try:
            write_identity(Path(part.place), identity)
        except (OSError, UnicodeDecodeError) as error:
            raise StartRefused(f"{part} cannot be written: {reason_of(error)}") from error
    if not parts.has_ids:
        make_file(settings, identity)


async def _migrated(settings: Settings, store: Store, *, make: bool) -> StateParts:
    """Returns the checked parts. Existing tables are migrated, missing ones made with `make`."""
    parts = await checked_parts(settings, store)
    if make:
        make_folder(settings.state)
    if make or parts.version is not None:
        await store.migrate(make=make)
        if parts.version != HEAD:
            parts = await checked_parts(settings, store)
    return parts


async def open_state(settings: Settings, store: Store) -> None:
    """Checks an existing state as `begin_state` does; raises StartRefused where there is none."""
    if (await _migrated(settings, store, make=False)).version is None:
        raise StartRefused(
            f"there is no store at {store.place} yet: `clinic-gateway serve` makes it, and so does"
            " `clinic-gateway keys create`; or name another configuration with --config"
        )


@asynccontextmanager
async def opened(settings: Settings, *, may_begin: bool = False) -> AsyncIterator[Store]:
    """Yields the store of the checked state. Raises StartRefused and StoreError."""
    store = open_own_store(settings)
    try:
        await (begin_state if may_begin else open_state)(settings, store)
        yield store
    finally:
        await store.aclose()
        if may_begin:
            hand_over(settings.state)


@asynccontextmanager
async def opened_if_begun(settings: Settings) -> AsyncIterator[Store | None]:
    """Does the same, but yields None where no state has begun yet."""
    async with aclosing(open_own_store(settings)) as store:
        parts = await _migrated(settings, store, make=False)
        yield None if parts.version is None else store


def check_clock(now: Callable[[], datetime]) -> None:
    """Raises StartRefused where the clock cannot be read, or is years off."""
    try:
        moment = now()
    except (ValueError, OverflowError, OSError) as error:
        raise StartRefused(f"the machine's clock is of no use ({error}): set it") from error
    if not FIRST <= moment < LAST:
        raise StartRefused(
            f"the machine's clock says {write_instant(moment)}, which is"
            f" {'before this program was made' if moment < FIRST else 'too far ahead'}: set it"
        )


async def check_not_behind(store: Store, now: datetime) -> None:
    """Raises StartRefused where the store has seen times far ahead of `now`, and StoreError."""
    latest = await KeyStore(store).latest_time()
    if latest is not None and latest - now > BEHIND:
        raise StartRefused(
            f"the machine's clock says {write_instant(now)}, and this state has seen"
            f" {write_instant(latest)}: set the clock; or, where it is right and was ahead then,"
            " `clinic-gateway state clock --accept`"
        )
