"""The children of a parent: started, heard, reaped, started again, and killed where they hang."""

import math
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from gateway.events import Events
from gateway.processes.child import Child, SignalWatcher, Spawner, Work, heartbeats_of

# A child that died is started again after this many seconds, twice as many each time, and
# this many at the most; one that lived for so long begins anew.
FIRST_PAUSE, LONGEST_PAUSE, LIVED_WELL = 0.1, 10.0, 20.0
# Seconds without a turn of its event loop after which a child is taken for hung, and killed.
HUNG = 30.0
# Seconds that a child has to begin its work.
BEGIN_IN = 120.0
# Seconds that the parent waits for something to happen before it looks by itself.
STEP = 1.0
# Seconds that the kernel has to end a process that was killed.
DIE_IN = 5.0


@dataclass(slots=True, eq=False)
class WorkerSlot:
    """One place that a child fills with its work; `due` is when the next may be started."""

    name: str
    place: int
    work: Work
    child: Child | None = None
    due: float = 0.0
    pause: float = FIRST_PAUSE

    def put_off(self) -> None:
        """The next is started after a pause, and the one after that after a longer one."""
        self.due = time.monotonic() + self.pause
        self.pause = min(self.pause * 2, LONGEST_PAUSE)


class Supervisor:
    """The slots, the children in them, and those that were replaced and are on their way out.

    While it `lasts`, what ended is started again; `on_signal` gets each number that came.
    """

    def __init__(
        self,
        slots: Collection[WorkerSlot],
        events: Events,
        signals: SignalWatcher,
        on_signal: Callable[[int], None],
    ) -> None:
        self.slots = slots
        self._events = events
        self._signals = signals
        self._on_signal = on_signal
        self._leaving: list[Child] = []
        # while it is replaced, a child and the next one stand side by side
        self._spawner = Spawner(heartbeats=heartbeats_of(2 * len(slots)), events=events)
        # whoever still lives sees that its parent goes
        self.end_of_life = self._spawner.end
        self._turned = time.monotonic()
        self.lasts = False

    def children(self) -> Iterator[Child]:
        """All that live."""
        yield from self._leaving
        for slot in self.slots:
            if slot.child is not None:
                yield slot.child

    def start(self, slot: WorkerSlot) -> Child | None:
        """A child in that slot, in the place of none, or beside the one that leaves.

        None where the machine has no room for it; that is tried again.
        """
        taken = {child.place for child in self.children()}
        place = slot.place if slot.place not in taken else slot.place + len(self.slots)
        try:
            slot.child = self._spawner.spawn(slot.name, place, slot.work, list(self.children()))
        except OSError as error:
            self._events.report("process_not_started", error, process=slot.name)
            slot.put_off()
        return slot.child

    def set_aside(self, slot: WorkerSlot) -> Child | None:
        """The slot's child, which is on its way out; no other is started until somebody does."""
        child, slot.child = slot.child, None
        slot.due = math.inf
        if child is not None:
            self._leaving.append(child)
        return child

    def let_go(self, child: Child, seconds: float) -> None:
        """One that was replaced ends what it has begun, and is killed where that takes longer."""
        child.until = time.monotonic() + seconds
        child.signal(signal.SIGUSR1)

    def leaving(self, slot: WorkerSlot) -> list[Child]:
        """Those that were in that slot, and still live."""
        return [child for child in self._leaving if child.name == slot.name]

    def put_back(self, slot: WorkerSlot, child: Child | None) -> None:
        """One that was set aside, as the next one is not good."""
        failed = self.set_aside(slot)
        if failed is not None:
            failed.signal(signal.SIGKILL)
        slot.due = time.monotonic()
        if child is not None and not child.is_gone:
            self._leaving.remove(child)
            slot.child = child

    def wait(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Whether that came true in time; what happens meanwhile is dealt with."""
        until = time.monotonic() + seconds
        while not is_over():
            if time.monotonic() >= until:
                return False
            self.step()
        return True

    def wait_for_the_end(self, children: Collection[Child], seconds: float) -> None:
        """Until these have ended, by themselves or not."""

        def is_over() -> bool:
            return all(child.is_gone for child in children)

        if not self.wait(is_over, seconds):
            for child in children:
                self._kill(child, "process_late")
            self.wait(is_over, DIE_IN)

    def step(self) -> None:
        """Wait for something to happen, for a moment at the most, and deal with it."""
        speaking = {child.report: child for child in self.children() if child.is_open}
        due = [slot.due - time.monotonic() for slot in self._vacant()]
        patience = max(0.0, min([STEP, *due]))
        ready, _, _ = select.select([self._signals.fileno(), *speaking], [], [], patience)
        for file in ready:
            if file in speaking:
                speaking[file].read()
        for number in self._signals.received():
            self._on_signal(number)
        self._reap()
        self._kill_the_hung()
        now = time.monotonic()
        for slot in self._vacant():
            if now >= slot.due:
                self.start(slot)

    def _vacant(self) -> list[WorkerSlot]:
        """The slots that a child is to be started in, now or later."""
        return [slot for slot in self.slots if self.lasts and slot.child is None]

    def _reap(self) -> None:
        for child in list(self.children()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                child.status = os.waitstatus_to_exitcode(status)
                child.read()
                self._note_end(child)

    def _note_end(self, child: Child) -> None:
        if child in self._leaving:
            self._leaving.remove(child)
            return
        slot = next(slot for slot in self.slots if slot.child is child)
        slot.child = None
        if not self.lasts:
            return
        details = {"process": child.name, "pid": child.pid, "ended": _ended(child.status or 0)}
        # one that was set aside and has not been told to end goes on in its place
        goes_on = any(old.until == math.inf for old in self.leaving(slot))
        if goes_on and not child.is_well:
            self._events.report("process_ended", **details)
            return
        if time.monotonic() - child.began >= LIVED_WELL:
            slot.pause = FIRST_PAUSE
        self._events.report("process_restarted", **details, after=slot.pause)
        slot.put_off()

    def _kill_the_hung(self) -> None:
        """But not after a pause of the whole machine, in which nobody's loop turned."""
        now = time.monotonic()
        paused, self._turned = now - self._turned > STEP * 5, now
        for child in self.children():
            if now > child.until:
                self._kill(child, "process_late")
            last = max(self._spawner.heartbeats[child.place], child.began)
            is_silent = now - last > HUNG if child.is_well else now - child.began > BEGIN_IN
            if is_silent and not paused:
                self._kill(child, "process_hung")

    def _kill(self, child: Child, event: str) -> None:
        """Say why, once, and kill it, unless it has ended."""
        if not child.is_gone and not child.is_killed:
            self._events.report(event, process=child.name, pid=child.pid)
            child.is_killed = True
        child.signal(signal.SIGKILL)


def _ended(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"with exit code {status}"
    names = {number.value: number.name for number in signal.Signals}
    return f"by signal {names.get(-status, -status)}"
