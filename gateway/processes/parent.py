"""The parent of several processes: it forks them, restarts the dead, rolls them, and ends them.

It serves nobody, starts no thread and opens no database: whatever happens to its children, it goes
on. Signals: SIGTERM and SIGINT end everything, SIGUSR2 replaces the children one by one, SIGHUP has
the policy looked at, SIGQUIT has every child say what it is doing.
"""

import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from gateway.events import Events
from gateway.processes.child import SignalWatcher, Work
from gateway.processes.supervisor import BEGIN_IN, Supervisor, WorkerSlot

OPERATIONS = "operations"
# Seconds beyond its delay in which a worker stops taking calls by itself.
LEAVE_IN = 0.2
# Seconds that a child has to end beyond what its calls have.
END_IN = 10.0


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


class Parent:
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
        self._operations = WorkerSlot(OPERATIONS, 0, plan.operations)
        numbers = range(1, plan.workers + 1)
        self._workers = [WorkerSlot(f"worker {n}", n, plan.worker(n)) for n in numbers]
        self._ending = False
        self._rolling = False
        self._supervisor: Supervisor

    def run(self) -> int:
        """Until the end: 0 where somebody asked for it, 1 where it could not begin."""
        with ExitStack() as stack:
            signals = stack.enter_context(SignalWatcher())
            slots = [self._operations, *self._workers]
            self._supervisor = Supervisor(slots, self._events, signals, self._receive)
            stack.callback(self._end)
            # operations makes what the workers find
            if self._start_well([self._operations]) and self._start_well(self._workers):
                self._supervise()
            elif not self._ending:
                return 1
        self._events.report("has_ended")
        return 0

    def _supervise(self) -> None:
        self._supervisor.lasts = True
        self._on_begin()
        while not self._ending:
            if self._rolling:
                self._rolling = False
                self._roll()
            self._supervisor.step()

    def _start_well(self, slots: list[WorkerSlot]) -> bool:
        """Whether a new child in each slot begins its work, and nobody asks for the end."""
        children = [self._supervisor.start(slot) for slot in slots]

        def lost() -> bool:
            return any(child is None or child.is_gone for child in children)

        def decided() -> bool:
            return lost() or self._ending or all(child and child.is_well for child in children)

        in_time = self._supervisor.wait(decided, BEGIN_IN)
        if not in_time:
            self._events.report("process_not_begun", seconds=BEGIN_IN)
        return in_time and not lost() and not self._ending

    def _run_by(self, plan: Plan) -> None:
        """Whatever is started from now on."""
        self._plan = plan
        self._operations.work = plan.operations
        for slot in self._workers:
            slot.work = plan.worker(slot.place)

    def _receive(self, number: int) -> None:
        if number in {signal.SIGTERM, signal.SIGINT}:
            if not self._ending:
                self._events.report("told_to_end", signal=signal.Signals(number).name)
            self._ending = True
            self._supervisor.lasts = False
        elif number == signal.SIGUSR2:
            self._rolling = True
        elif number == signal.SIGHUP and self._operations.child is not None:
            self._operations.child.signal(signal.SIGHUP)
        elif number == signal.SIGQUIT:
            for child in self._supervisor.children():
                child.signal(signal.SIGQUIT)

    def _roll(self) -> None:
        """One worker after the other, each old one until the new one answers; operations last."""
        plan = self._replan()
        if plan is None:
            return
        before = self._plan
        self._run_by(plan)
        first = self._workers[0]
        first.work = (plan.first or plan.worker)(first.place)
        for slot in self._workers:
            is_replaced = self._replace(slot, before)
            slot.work = self._plan.worker(slot.place)
            if not is_replaced:
                self._give_up(slot)
                return
        if self._replace_operations():
            self._events.report("roll_done")
        elif not self._ending:
            self._events.report("roll_without_operations")

    def _give_up(self, slot: WorkerSlot) -> None:
        if not self._ending:
            self._events.report("roll_given_up", failed=slot.name)

    def _replace(self, slot: WorkerSlot, before: Plan) -> bool:
        """Whether a new worker has taken the place of the old one; else all is as before."""
        # of one slot two live at the most
        self._supervisor.wait(
            lambda: self._ending or not self._supervisor.leaving(slot), self._patience
        )
        if self._ending:
            return False
        old = self._supervisor.set_aside(slot)
        if self._start_well([slot]):
            if old is not None:
                self._supervisor.let_go(old, self._patience)
            return True
        self._run_by(before)
        self._supervisor.put_back(slot, old)
        return False

    def _replace_operations(self) -> bool:
        """Whether it begins anew: there is one of it at a time, as it decides for all."""
        old = self._supervisor.set_aside(self._operations)
        if old is not None:
            self._supervisor.let_go(old, END_IN)
            self._supervisor.wait_for_the_end([old], END_IN)
        return self._start_well([self._operations])

    @property
    def _patience(self) -> float:
        """Seconds that a worker has to end."""
        return self._plan.patience + END_IN

    def _end(self) -> None:
        """Workers first, while operations says that the end has begun; then that one too."""
        supervisor, operations = self._supervisor, self._operations.child
        self._ending, supervisor.lasts = True, False
        for child in supervisor.children():
            child.signal(signal.SIGTERM)
        workers = [child for child in supervisor.children() if child is not operations]
        supervisor.wait(
            lambda: all(child.is_gone for child in workers), self._plan.delay + LEAVE_IN
        )
        self._plan.unlisten()
        supervisor.wait_for_the_end(workers, self._patience - self._plan.delay)
        supervisor.end_of_life()
        if operations is not None:
            supervisor.wait_for_the_end([operations], END_IN)
