"""The parent of several processes: it forks them, restarts the dead, rolls them, and ends them.

It serves nobody, starts no thread and opens no database: whatever happens to its children, it goes
on. Signals: SIGTERM and SIGINT end everything, SIGUSR2 replaces the children one by one, SIGHUP has
the policy looked at, SIGQUIT has every child say what it is doing.
"""

import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from gateway.processes import ears
from gateway.processes.brood import BEGIN_IN, Brood, Log, Post
from gateway.processes.child import Work

OPERATIONS = "operations"
# Seconds beyond its delay in which a worker stops taking calls by itself.
LEAVE_IN = 0.2
# Seconds that a child has to end beyond what its calls have.
END_IN = 10.0

# What a gateway says of its own end, of however many processes it is.
TOLD_TO_END = "the gateway was told to end"
HAS_ENDED = "the gateway has ended"


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
        self, plan: Plan, log: Log, replan: Callable[[], Plan | None], begun: Callable[[], None]
    ) -> None:
        self._plan = plan
        self._log = log
        self._replan = replan
        self._begun = begun
        self._operations = Post(OPERATIONS, 0, plan.operations)
        numbers = range(1, plan.workers + 1)
        self._workers = [Post(f"worker {n}", n, plan.worker(n)) for n in numbers]
        self._ending = False
        self._rolling = False
        self._brood: Brood

    def run(self) -> int:
        """Until the end: 0 where somebody asked for it, 1 where it could not begin."""
        code = self._live()
        if code == 0:
            self._log.info(HAS_ENDED)
        return code

    def _live(self) -> int:
        with ExitStack() as stack:
            hearing = stack.enter_context(ears.opened())
            posts = [self._operations, *self._workers]
            self._brood = Brood(posts, self._log, hearing, self._hear)
            stack.callback(self._end)
            if not self._begin():
                return 0 if self._ending else 1
            self._brood.lasts = True
            self._begun()
            while not self._ending:
                self._keep()
        return 0

    def _begin(self) -> bool:
        """Operations first: it makes what the workers find."""
        return all(self._start_well(posts) for posts in ([self._operations], self._workers))

    def _start_well(self, posts: list[Post]) -> bool:
        """Whether a new child in each post begins its work, and nobody asks for the end."""
        children = [self._brood.start(post) for post in posts]

        def lost() -> bool:
            return any(each is None or each.is_gone for each in children)

        def decided() -> bool:
            return lost() or self._ending or all(each and each.is_well for each in children)

        in_time = self._brood.wait(decided, BEGIN_IN)
        if not in_time:
            self._log.warn("a process of the gateway did not begin in time", seconds=BEGIN_IN)
        return in_time and not lost() and not self._ending

    def _run_by(self, plan: Plan) -> None:
        """Whatever is started from now on."""
        self._plan = plan
        self._operations.work = plan.operations
        for post in self._workers:
            post.work = plan.worker(post.place)

    def _keep(self) -> None:
        """Replace what is to be replaced, and wait for what comes."""
        if self._rolling:
            self._rolling = False
            self._roll()
        self._brood.step()

    def _hear(self, number: int) -> None:
        if number in {signal.SIGTERM, signal.SIGINT}:
            if not self._ending:
                self._log.info(TOLD_TO_END, signal=signal.Signals(number).name)
            self._ending = True
            self._brood.lasts = False
        elif number == signal.SIGUSR2:
            self._rolling = True
        elif number == signal.SIGHUP and self._operations.child is not None:
            self._operations.child.signal(signal.SIGHUP)
        elif number == signal.SIGQUIT:
            for child in self._brood.children():
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
        for post in self._workers:
            is_replaced = self._replace(post, before)
            post.work = self._plan.worker(post.place)
            if not is_replaced:
                self._give_up(post)
                return
        if self._replace_operations():
            self._log.info("all processes of the gateway were replaced")
        elif not self._ending:
            self._log.warn("the workers were replaced, but operations does not begin")

    def _give_up(self, post: Post) -> None:
        if not self._ending:
            self._log.warn(
                "the roll is given up: the old processes go on",
                failed=post.name,
                remedy="mend what it says why it cannot begin, and roll again",
            )

    def _replace(self, post: Post, before: Plan) -> bool:
        """Whether a new worker has taken the place of the old one; else all is as before."""
        # of one post two live at the most
        self._brood.wait(lambda: self._ending or not self._brood.leaving(post), self._patience)
        if self._ending:
            return False
        old = self._brood.set_aside(post)
        if self._start_well([post]):
            if old is not None:
                self._brood.let_go(old, self._patience)
            return True
        self._run_by(before)
        self._brood.put_back(post, old)
        return False

    def _replace_operations(self) -> bool:
        """Whether it begins anew: there is one of it at a time, as it decides for all."""
        old = self._brood.set_aside(self._operations)
        if old is not None:
            self._brood.let_go(old, END_IN)
            self._brood.wait_for_the_end([old], END_IN)
        return self._start_well([self._operations])

    @property
    def _patience(self) -> float:
        """Seconds that a worker has to end."""
        return self._plan.patience + END_IN

    def _end(self) -> None:
        """Workers first, while operations says that the end has begun; then that one too."""
        brood, operations = self._brood, self._operations.child
        self._ending, brood.lasts = True, False
        for child in brood.children():
            child.signal(signal.SIGTERM)
        workers = [each for each in brood.children() if each is not operations]
        brood.wait(lambda: all(each.is_gone for each in workers), self._plan.delay + LEAVE_IN)
        self._plan.unlisten()
        brood.wait_for_the_end(workers, self._patience - self._plan.delay)
        brood.end_of_life()
        if operations is not None:
            brood.wait_for_the_end([operations], END_IN)
