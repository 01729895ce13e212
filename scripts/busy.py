"""Runs a command several times beside a load on two cores; exits with the first failure's code.

`python scripts/busy.py 3 make test`: stress-ng makes the load where it is installed, else Python.
"""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CORES = 2
STRESS = ["stress-ng", "--quiet", "--cpu", str(CORES)]
SPIN = [sys.executable, "-c", "while True: pass"]


@contextmanager
def load() -> Iterator[None]:
    """Busy processes, ended by their own ids however the block ends."""
    wanted = [STRESS] if shutil.which(STRESS[0]) else [SPIN] * CORES
    started = [subprocess.Popen(each) for each in wanted]  # noqa: S603 - its own words
    try:
        yield
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait()


def main(times: int, command: list[str]) -> int:
    """The exit code of the first run that fails; 0 where none does."""
    with load():
        for number in range(1, times + 1):
            sys.stdout.write(f"run {number} of {times}, beside a load on {CORES} cores\n")
            sys.stdout.flush()
            code = subprocess.run(command, check=False).returncode  # noqa: S603 - the caller's
            if code:
                return code
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or not sys.argv[1].isdecimal():
        sys.stderr.write("usage: python scripts/busy.py TIMES COMMAND...\n")
        raise SystemExit(2)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the load ends too
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2:]))
