"""The parent of several processes: it forks them, restarts the dead, rolls them, and ends them.

It serves nobody, starts no thread and opens no database: whatever happens to its children, it goes
on. Signals: SIGTERM and SIGINT end everything, SIGUSR2 replaces the children one by one, SIGHUP has
the policy looked at, SIGQUIT has every child say what it is doing.
"""

import math
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from gateway.events import Events
from gateway.processes.child import Child, Work, spawn, watched_signals

OPERATIONS = "operations"
# A child that died is started again after this many seconds, twice as many each time, and
# this many at the most; one that lived for so long begins anew.
FIRST_PAUSE, LONGEST_PAUSE, LIVED_WELL = 0.1, 10.0, 20.0
# Seconds without a turn of its event loop after which a child is taken for hung, and killed.
HUNG = 30.0
# Seconds that a child has to begin its work, and to end beyond what its calls have.
BEGIN_IN, END_IN = 120.0, 10.0
# Seconds beyond its delay in which a worker stops taking calls by itself.
LEAVE_IN = 0.2
# Seconds that the parent waits for something to happen before it looks by itself.
STEP = 1.0
# Seconds that the kernel has to end a process that was killed.
DIE_IN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to run: the work of the operations process and of each worker, by its number.

    `first` is the work of the first worker of a roll, which looks more closely before it begins.
    `patience` is how many seconds a worker has to end; for the first `delay` it still takes calls.
    `unlisten` then lets nobody in any more: as long as the parent has the socket too, whoever came
    would wait for an answer.
    """

    operations: Work
    worker: Callable[[int], Work]
    workers: int
    patience: float
    first: Callable[[int], Work] | None = None
    delay: float = 0.0
    unlisten: Callable[[], None] = lambda: None


@dataclass(slots=True, eq=False)
class WorkerSlot:
    """One place that a child fills; `due` is when the next may be started."""

    name: str
    number: int
    child: Child | None = None
    due: float = 0.0
    pause: float = FIRST_PAUSE

    def put_off(self) -> None:
        """The next is started after a pause, and the one after that after a longer one."""
        self.due = time.monotonic() + self.pause
        self.pause = min(self.pause * 2, LONGEST_PAUSE)


class Supervisor:
    """Runs a plan until it is told to end; `replan` gives what a roll is to run from then on."""

    def __init__(
        self,
        plan: Plan,
        events: Events,
        replan: Callable[[], Plan | None],
        on_begin: Callable[[], None],
    ) -> None:
        self._plan = plan
        self._events = events
        self._replan = replan
        self._on_begin = on_begin
        # where those that came stand, while it runs
        self._signals = -1
        self._operations = WorkerSlot(OPERATIONS, 0)
        numbers = range(1, plan.workers + 1)
        self._workers = [WorkerSlot(f"worker {number}", number) for number in numbers]
        self._slots = [self._operations, *self._workers]
        # those that were replaced and are on their way out
        self._leaving: list[Child] = []
        # its reading end is ready in every child once the parent is gone
        self._life = os.pipe()
        self._turned = time.monotonic()
        # as long as it does, what ended is started again
        self._lasts = False
        self._ending = False
        self._rolling = False

    def run(self) -> int:
        """Until the end: 0 where somebody asked for it, 1 where it could not begin."""
        with watched_signals() as self._signals:
            try:
                # operations makes what the workers find
                if self._start_well([self._operations]) and self._start_well(self._workers):
                    self._lasts = True
                    self._on_begin()
                    while not self._ending:
                        if self._rolling:
                            self._rolling = False
                            self._roll()
                        self._step()
                elif not self._ending:
                    return 1
            finally:
                self._end()
        self._events.report("has_ended")
        return 0

    def _children(self) -> Iterator[Child]:
        """All that live."""
        yield from self._leaving
        yield from (slot.child for slot in self._slots if slot.child is not None)

    def _start_well(self, slots: list[WorkerSlot], work: Work | None = None) -> bool:
        """Whether a new child in each slot begins its work, and nobody asks for the end."""
        children = [self._start(slot, work) for slot in slots]

        def lost() -> bool:
            return any(child is None or child.is_gone for child in children)

        def decided() -> bool:
            return lost() or self._ending or all(child and child.is_well for child in children)

        in_time = self._wait(decided, BEGIN_IN)
        if not in_time:
            self._events.report("process_not_begun", seconds=BEGIN_IN)
        return in_time and not lost() and not self._ending

    def _start(self, slot: WorkerSlot, work: Work | None = None) -> Child | None:
        """A child in that slot, in the place of none, or beside the one that leaves.

        It does the plan's work unless another is given. None where the machine has no room for it;
        that is tried again.
        """
        is_worker = slot is not self._operations
        planned = self._plan.worker(slot.number) if is_worker else self._plan.operations
        try:
            others = list(self._children())
            slot.child = spawn(slot.name, work or planned, self._life, others, self._events)
        except OSError as error:
            self._events.report("process_not_started", error, process=slot.name)
            slot.put_off()
        return slot.child

    def _roll(self) -> None:
        """One worker after the other, each old one until the new one answers; operations last."""
        plan = self._replan()
        if plan is None:
            return
        before, self._plan = self._plan, plan
        for slot in self._workers:
            first = plan.first if slot is self._workers[0] else None
            if not self._replace(slot, first and first(slot.number)):
                # the next one is not good
                self._plan = before
                if not self._ending:
                    self._events.report("roll_given_up", failed=slot.name)
                return
        # there is one of operations at a time, as it decides for all
        if (old := self._set_aside(self._operations)) is not None:
            self._let_go(old, END_IN)
            self._wait_for_the_end([old], END_IN)
        if self._start_well([self._operations]):
            self._events.report("roll_done")
        elif not self._ending:
            self._events.report("roll_without_operations")

    def _replace(self, slot: WorkerSlot, work: Work | None) -> bool:
        """Whether a new worker has taken the place of the old one; else all is as before."""
        # of one slot two live at the most
        self._wait(lambda: self._ending or not self._leaving_from(slot), self._patience)
        if self._ending:
            return False
        old = self._set_aside(slot)
        if self._start_well([slot], work):
            if old is not None:
                self._let_go(old, self._patience)
            return True
        failed = self._set_aside(slot)
        if failed is not None:
            failed.signal(signal.SIGKILL)
        slot.due = time.monotonic()
        if old is not None and not old.is_gone:
            self._leaving.remove(old)
            slot.child = old
        return False

    def _set_aside(self, slot: WorkerSlot) -> Child | None:
        """The slot's child, which is on its way out; no other is started until somebody does."""
        child, slot.child = slot.child, None
        slot.due = math.inf
        if child is not None:
            self._leaving.append(child)
        return child

    def _let_go(self, child: Child, seconds: float) -> None:
        """One that was replaced ends what it has begun, and is killed where that takes longer."""
        child.until = time.monotonic() + seconds
        child.signal(signal.SIGUSR1)

    def _leaving_from(self, slot: WorkerSlot) -> list[Child]:
        """Those that were in that slot, and still live."""
        return [child for child in self._leaving if child.name == slot.name]

    @property
    def _patience(self) -> float:
        """Seconds that a worker has to end."""
        return self._plan.patience + END_IN

    def _end(self) -> None:
        """Workers first, while operations says that the end has begun; then that one too."""
        self._ending, self._lasts, operations = True, False, self._operations.child
        for child in self._children():
            child.signal(signal.SIGTERM)
        workers = [child for child in self._children() if child is not operations]
        self._wait(lambda: all(child.is_gone for child in workers), self._plan.delay + LEAVE_IN)
        self._plan.unlisten()
        self._wait_for_the_end(workers, self._patience - self._plan.delay)
        # whoever still lives sees that its parent goes
        for file in self._life:
            with suppress(OSError):
                os.close(file)
        if operations is not None:
            self._wait_for_the_end([operations], END_IN)

    def _wait(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Whether that came true in time; what happens meanwhile is dealt with."""
        until = time.monotonic() + seconds
        while not is_over():
            if time.monotonic() >= until:
                return False
            self._step()
        return True

    def _wait_for_the_end(self, children: Collection[Child], seconds: float) -> None:
        """Until these have ended, by themselves or not."""

        def is_over() -> bool:
            return all(child.is_gone for child in children)

        if not self._wait(is_over, seconds):
            for child in children:
                self._kill(child, "process_late")
            self._wait(is_over, DIE_IN)

    def _step(self) -> None:
        """Wait for something to happen, for a moment at the most, and deal with it."""
        speaking = {child.report: child for child in self._children() if child.is_open}
        due = [slot.due - time.monotonic() for slot in self._vacant()]
        patience = max(0.0, min([STEP, *due]))
        ready, _, _ = select.select([*speaking, self._signals], [], [], patience)
        for file in ready:
            if file in speaking:
                speaking[file].read()
            else:
                for number in os.read(file, 4096):
                    self._receive(number)
        for child in list(self._children()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                child.status = os.waitstatus_to_exitcode(status)
                child.read()
                self._note_end(child, child.status)
        self._kill_the_hung()
        now = time.monotonic()
        for slot in self._vacant():
            if now >= slot.due:
                self._start(slot)

    def _vacant(self) -> list[WorkerSlot]:
        """The slots that a child is to be started in, now or later."""
        return [slot for slot in self._slots if self._lasts and slot.child is None]

    def _receive(self, number: int) -> None:
        if number in {signal.SIGTERM, signal.SIGINT}:
            if not self._ending:
                self._events.report("told_to_end", signal=signal.Signals(number).name)
            self._ending = True
            self._lasts = False
        elif number == signal.SIGUSR2:
            self._rolling = True
        elif number == signal.SIGHUP and self._operations.child is not None:
            self._operations.child.signal(signal.SIGHUP)
        elif number == signal.SIGQUIT:
            for child in self._children():
                child.signal(signal.SIGQUIT)

    def _note_end(self, child: Child, status: int) -> None:
        if child in self._leaving:
            self._leaving.remove(child)
            return
        slot = next(slot for slot in self._slots if slot.child is child)
        slot.child = None
        if not self._lasts:
            return
        ended = f"with exit code {status}"
        if status < 0:
            names = {number.value: number.name for number in signal.Signals}
            ended = f"by signal {names.get(-status, -status)}"
        details = {"process": child.name, "pid": child.pid, "ended": ended}
        # one that was set aside and has not been told to end goes on in its place
        goes_on = any(old.until == math.inf for old in self._leaving_from(slot))
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
        for child in self._children():
            if now > child.until:
                self._kill(child, "process_late")
            silent = now - child.heartbeat[0]
            is_silent = silent > HUNG if child.is_well else now - child.began > BEGIN_IN
            if is_silent and not paused:
                self._kill(child, "process_hung")

    def _kill(self, child: Child, event: str) -> None:
        """Say why, once, and kill it, unless it has ended."""
        if not child.is_gone and not child.is_killed:
            self._events.report(event, process=child.name, pid=child.pid)
            child.is_killed = True
        child.signal(signal.SIGKILL)
