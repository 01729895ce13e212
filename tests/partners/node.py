"""What npm installs for the tests, from the lock: once, until the lock is another."""

import hashlib
import re
import shutil
import subprocess

import pytest

from tests.partners.page import CLIENTS

FOLDER = CLIENTS / "typescript"
_UNREACHABLE = re.compile(
    r"code (?:E(?:NOTFOUND|CONN[A-Z]+|TIMEDOUT|AI_AGAIN|NETUNREACH|HOSTUNREACH)|ERR_SOCKET_TIMEOUT)"
)


def install() -> None:
    """`node_modules` beside the lock; the test is skipped where that cannot be had."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("needs node and npm, to compile TypeScript: apt-get install nodejs npm")
    lock = FOLDER / "package-lock.json"
    now = hashlib.sha256(lock.read_bytes()).hexdigest()
    mark = FOLDER / "node_modules" / ".installed"
    if mark.exists() and mark.read_text() == now:
        return
    done = subprocess.run(
        ["npm", "ci", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"],
        cwd=FOLDER, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    if done.returncode and _UNREACHABLE.search(done.stderr):
        pytest.skip("needs a registry of npm, to install openapi-typescript and TypeScript once")
    assert done.returncode == 0, done.stderr
    mark.write_text(now)
