"""Looks at the files once, as a program of its own: the request on stdin, the outcome on stdout.

So neither a file server that hangs nor a damaged file holds the gateway up, and the work takes none
of its time.
"""

import os
import sys

from msgspec import json

from adapters.copies.looking import Outcome, Request, look

# How much the program gives way to others.
NICE = 10


def main() -> None:
    os.nice(NICE)
    request = json.decode(sys.stdin.buffer.read(), type=Request)
    try:
        outcome = look(request)
    except Exception as error:  # noqa: BLE001 - its text may hold a value, its class does not
        outcome = Outcome("failed", why=f"the copying itself fails: {type(error).__name__}")
    sys.stdout.buffer.write(json.encode(outcome))


if __name__ == "__main__":
    main()
