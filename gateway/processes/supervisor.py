"""Runs several processes as their parent: starts, restarts, replaces, and ends them.

It serves nobody, starts no thread and opens no database, so that it outlives its children's faults.
SIGTERM and SIGINT end everything, SIGUSR2 replaces the children one by one, SIGHUP has the policy
read again, and SIGQUIT has every child log what it is doing.
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
# Seconds before a dead child is started again, which double up to a bound; and the seconds after
# which a child has lived long enough for the first pause.
FIRST_PAUSE, LONGEST_PAUSE, LIVED_WELL = 0.1, 10.0, 20.0
# Seconds without a turn of its event loop after which a child counts as hung and is killed.
HUNG = 30.0
# Seconds that a child has to begin its work, and to end once its calls have.
BEGIN_IN, END_IN = 120.0, 10.0
# Seconds after its delay in which a worker stops taking calls by itself.
LEAVE_IN = 0.2
# The most seconds between two looks at the children.
STEP = 1.0
# Seconds that a killed process has to end.
DIE_IN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to run: the work of the operations process and of each worker, by its number.

    `first` is the work of the first worker of a roll, which checks more before it begins. A worker
    has `patience` seconds to end, and takes calls for the first `delay` of them. `unlisten` closes
    the parent's copy of the socket, in which callers would wait in vain.
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
    """A place for a child; `due` is when the next one may be started."""

    name: str
    number: int
    child: Child | None = None
    due: float = 0.0
    pause: float = FIRST_PAUSE

    def put_off(self) -> None:
        """Puts off the next start by the pause, and doubles the pause."""
        self.due = time.monotonic() + self.pause
        self.pause = min(self.pause * 2, LONGEST_PAUSE)


class Supervisor:
    """Runs a plan until a signal ends it; `replan` gives the next plan of a roll, None for none."""

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
        # the file in which signals stand, while it runs
        self._signals = -1
        self._operations = WorkerSlot(OPERATIONS, 0)
        numbers = range(1, plan.workers + 1)
        self._workers = [WorkerSlot(f"worker {number}", number) for number in numbers]
        self._slots = [self._operations, *self._workers]
        # replaced children that have not ended
        self._leaving: list[Child] = []
        # a pipe whose reading end tells every child once the parent is gone
        self._life = os.pipe()
        self._turned = time.monotonic()
        # whether a child that ended is started again
        self._lasts = False
        self._ending = False
        self._rolling = False

    def run(self) -> int:
        """Runs until a signal ends it, and returns 0; returns 1 where the plan cannot begin."""
        with watched_signals() as self._signals:
            try:
                # the operations process makes what the workers use
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
        yield from self._leaving
        yield from (slot.child for slot in self._slots if slot.child is not None)

    def _start_well(self, slots: list[WorkerSlot], work: Work | None = None) -> bool:
        """Starts a child in each slot; returns whether all began their work and no signal came."""
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
        """Starts a child in an empty slot, with the plan's work unless another is given.

        Returns None where the fork failed; then the slot is put off.
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
        """Replaces one worker after another, each once the new one works; operations last."""
        plan = self._replan()
        if plan is None:
            return
        before, self._plan = self._plan, plan
        for slot in self._workers:
            first = plan.first if slot is self._workers[0] else None
            if not self._replace(slot, first and first(slot.number)):
                # the new plan does not work
                self._plan = before
                if not self._ending:
                    self._events.report("roll_given_up", failed=slot.name)
                return
        # only one operations process may run at a time, since it decides for all
        if (old := self._set_aside(self._operations)) is not None:
            self._let_go(old, END_IN)
            self._wait_for_the_end([old], END_IN)
        if self._start_well([self._operations]):
            self._events.report("roll_done")
        elif not self._ending:
            self._events.report("roll_without_operations")

    def _replace(self, slot: WorkerSlot, work: Work | None) -> bool:
        """Replaces a worker; returns False where that failed and the old one stays."""
        # a slot has two live children at most
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
        """Empties the slot, and returns the child that leaves; no other is started by itself."""
        child, slot.child = slot.child, None
        slot.due = math.inf
        if child is not None:
            self._leaving.append(child)
        return child

    def _let_go(self, child: Child, seconds: float) -> None:
        """Tells a replaced child to end, and has it killed after that many seconds."""
        child.until = time.monotonic() + seconds
        child.signal(signal.SIGUSR1)

    def _leaving_from(self, slot: WorkerSlot) -> list[Child]:
        return [child for child in self._leaving if child.name == slot.name]

    @property
    def _patience(self) -> float:
        """Seconds that a worker has to end."""
        return self._plan.patience + END_IN

    def _end(self) -> None:
        """Ends the workers, then the operations process, which tells meanwhile of the shutdown."""
        self._ending, self._lasts, operations = True, False, self._operations.child
        for child in self._children():
            child.signal(signal.SIGTERM)
        workers = [child for child in self._children() if child is not operations]
        self._wait(lambda: all(child.is_gone for child in workers), self._plan.delay + LEAVE_IN)
        self._plan.unlisten()
        self._wait_for_the_end(workers, self._patience - self._plan.delay)
        # tells the children that still live
        for file in self._life:
            with suppress(OSError):
                os.close(file)
        if operations is not None:
            self._wait_for_the_end([operations], END_IN)

    def _wait(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Steps until the condition holds; returns False where it does not in time."""
        until = time.monotonic() + seconds
        while not is_over():
            if time.monotonic() >= until:
                return False
            self._step()
        return True

    def _wait_for_the_end(self, children: Collection[Child], seconds: float) -> None:
        """Waits until these have ended, and kills them after that many seconds."""

        def is_over() -> bool:
            return all(child.is_gone for child in children)

        if not self._wait(is_over, seconds):
            for child in children:
                self._kill(child, "process_late")
            self._wait(is_over, DIE_IN)

    def _step(self) -> None:
        """Waits up to STEP for signals, reports and due starts, and handles them."""
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
        # the old child, set aside but not told to end, goes on in its place
        goes_on = any(old.until == math.inf for old in self._leaving_from(slot))
        if goes_on and not child.is_well:
            self._events.report("process_ended", **details)
            return
        if time.monotonic() - child.began >= LIVED_WELL:
            slot.pause = FIRST_PAUSE
        self._events.report("process_restarted", **details, after=slot.pause)
        slot.put_off()

    def _kill_the_hung(self) -> None:
        """Kills children that are late or hung, unless the whole machine has just paused."""
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
        """Kills a child unless it has ended, and reports the event the first time."""
        if not child.is_gone and not child.is_killed:
            self._events.report(event, process=child.name, pid=child.pid)
            child.is_killed = True
        child.signal(signal.SIGKILL)
