"""What a process and all that came from it use of the machine, as Linux tells it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Memory(NamedTuple):
    """MB that a process holds, and of these what nobody else does."""

    whole: int
    alone: int


def family(pid: int) -> Iterator[int]:
    """A process and all that came from it."""
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split():
        yield from family(int(child))


def cpu_of_all(pid: int) -> float:
    """Seconds of CPU of a process and all that came from it, to the microsecond."""
    return sum(_cpu(each) for each in family(pid))


def _cpu(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text("ascii").split()[0]) for each in threads) / 1e9


def memory(pid: int) -> Iterator[Memory]:
    """How much each process of a family holds."""
    for each in family(pid):
        lines = Path(f"/proc/{each}/smaps_rollup").read_text("ascii").splitlines()[1:]
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        alone = sizes["Private_Clean"] + sizes["Private_Dirty"]
        yield Memory(sizes["Rss"] // 1024, alone // 1024)
