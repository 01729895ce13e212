"""Makes package-lock.json anew, without an address: `make lock` runs it.

npm leaves out where each package came from (see .npmrc), but not where its authors take money.
"""

import json
import shutil
import subprocess
import sys
from typing import Any

from tests.partners.page import CLIENTS

LOCK = CLIENTS / "typescript" / "package-lock.json"


def without_funding(lock: dict[str, Any]) -> dict[str, Any]:
    packages = {
        name: {member: value for member, value in each.items() if member != "funding"}
        for name, each in lock["packages"].items()
    }
    return {**lock, "packages": packages}


if __name__ == "__main__":
    if shutil.which("npm") is None:
        sys.exit("the lock of tests/clients/typescript needs npm: apt-get install nodejs npm")
    subprocess.run(["npm", "install", "--package-lock-only"], cwd=LOCK.parent, check=True)
    LOCK.write_text(f"{json.dumps(without_funding(json.loads(LOCK.read_text())), indent=2)}\n")
