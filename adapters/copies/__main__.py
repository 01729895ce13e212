"""Looks at the files once, as a program of its own: the request on stdin, the outcome on stdout.

So neither a file server that hangs nor a damaged file holds the gateway up, and the work takes none
of its time.
"""

import os
import pwd
import sys
from contextlib import suppress
from pathlib import Path

from msgspec import json

from adapters.copies.look import Outcome, Request, look

# How much the program gives way to others.
NICE = 10


def main() -> None:
    with suppress(OSError):  # where the service may not set priorities
        os.nice(NICE)
    request = json.decode(sys.stdin.buffer.read(), type=Request)
    try:
        _become_owner(Path(request.folder).parent)
        outcome = look(request)
    except Exception as error:  # noqa: BLE001 - its text may hold a value, its class does not
        outcome = Outcome("failed", why=f"the copying itself fails: {type(error).__name__}")
    sys.stdout.buffer.write(json.encode(outcome))


def _become_owner(state: Path) -> None:
    """Becomes the user whose the folder is, where root looks: it tells what that user may read."""
    if os.geteuid() != 0 or (owner := state.stat().st_uid) == 0:
        return
    user = pwd.getpwuid(owner)
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


if __name__ == "__main__":
    main()
