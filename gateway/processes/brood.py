"""The children of a parent: started, heard, reaped, started again, and killed where they hang."""

import math
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from gateway.processes.child import Child, Nest, Pulses, Work
from gateway.processes.ears import Ears

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

LATE = "a process of the gateway did not end in time: it is killed"


class Log(Protocol):
    """Where it is said what becomes of the children."""

    def info(self, event: str, **details: Any) -> None: ...

    def warn(self, event: str, **details: Any) -> None: ...

    def fault(self, event: str, error: BaseException, **details: Any) -> None: ...


@dataclass(slots=True, eq=False)
class Post:
    """One place that a child fills with its work; `due` is when the next may be started."""

    name: str
    place: int
    work: Work
    child: Child | None = None
    due: float = 0.0
    pause: float = FIRST_PAUSE


class Brood:
    """The posts, the children in them, and those that were replaced and are on their way out."""

    def __init__(
        self, posts: Collection[Post], log: Log, ears: Ears, hear: Callable[[int], None]
    ) -> None:
        self.posts = posts
        self._log = log
        self._ears = ears
        self._hear = hear
        self._leaving: list[Child] = []
        # while it is replaced, a child and the next one stand side by side
        pulses = Pulses(2 * len(posts))
        self._nest = Nest(pulses=pulses, failed=partial(log.fault, "a process failed"))
        self._turned = time.monotonic()
        # only what has begun is started again
        self.lasts = False

    def children(self) -> Iterator[Child]:
        """All that live."""
        yield from self._leaving
        for post in self.posts:
            if post.child is not None:
                yield post.child

    def start(self, post: Post) -> Child | None:
        """A child in that post, in the place of none, or beside the one that leaves.

        None where the machine has no room for it; that is tried again.
        """
        taken = {each.place for each in self.children()}
        place = post.place if post.place not in taken else post.place + len(self.posts)
        try:
            post.child = self._nest.fork(post.name, place, post.work, list(self.children()))
        except OSError as error:
            self._log.fault("a process of the gateway cannot be started", error, process=post.name)
            self._put_off(post)
        return post.child

    def set_aside(self, post: Post) -> Child | None:
        """The post's child, which is on its way out; no other is started until somebody does."""
        child, post.child = post.child, None
        post.due = math.inf
        if child is not None:
            self._leaving.append(child)
        return child

    def let_go(self, child: Child, seconds: float) -> None:
        """One that was replaced ends what it has begun, and is killed where that takes longer."""
        child.until = time.monotonic() + seconds
        child.signal(signal.SIGUSR1)

    def leaving(self, post: Post) -> list[Child]:
        """Those that were in that post, and still live."""
        return [each for each in self._leaving if each.name == post.name]

    def put_back(self, post: Post, child: Child | None) -> None:
        """One that was set aside, as the next one is not good."""
        failed = self.set_aside(post)
        if failed is not None:
            failed.signal(signal.SIGKILL)
        post.due = time.monotonic()
        if child is not None and not child.is_gone:
            self._leaving.remove(child)
            post.child = child

    def end_of_life(self) -> None:
        """Whoever still lives sees that its parent goes."""
        self._nest.end()

    def wait(self, over: Callable[[], bool], seconds: float) -> bool:
        """Whether that came true in time; what happens meanwhile is dealt with."""
        until = time.monotonic() + seconds
        while not over():
            if time.monotonic() >= until:
                return False
            self.step()
        return True

    def step(self) -> None:
        """Wait for something to happen, for a moment at the most, and deal with it."""
        heard = {each.said: each for each in self.children() if each.is_heard}
        ears = self._ears.fileno()
        ready, _, _ = select.select([ears, *heard], [], [], self._until_due())
        for each in ready:
            if each in heard:
                heard[each].hear()
        for number in self._ears.heard():
            self._hear(number)
        self._reap()
        self._kill_the_hung()
        self._start_the_due()

    def _start_the_due(self) -> None:
        now = time.monotonic()
        for post in self.posts:
            if self.lasts and post.child is None and now >= post.due:
                self.start(post)

    def _until_due(self) -> float:
        now = time.monotonic()
        due = [post.due - now for post in self.posts if self.lasts and post.child is None]
        return max(0.0, min([STEP, *due]))

    def _reap(self) -> None:
        for child in list(self.children()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                child.status = os.waitstatus_to_exitcode(status)
                if child.is_heard:
                    child.hear()
                self._gone(child)

    def _gone(self, child: Child) -> None:
        if child in self._leaving:
            self._leaving.remove(child)
            return
        post = next(each for each in self.posts if each.child is child)
        post.child = None
        if not self.lasts:
            return
        said = {"process": child.name, "pid": child.pid, "ended": _ended(child.status)}
        if self._old_goes_on(post) and not child.is_well:
            self._log.warn("a process of the gateway has ended", **said)
            return
        if time.monotonic() - child.began >= LIVED_WELL:
            post.pause = FIRST_PAUSE
        event = "a process of the gateway has ended: it is started again"
        self._log.warn(event, **said, after=post.pause)
        self._put_off(post)

    def _old_goes_on(self, post: Post) -> bool:
        """Whether one that was set aside in that post has not been told to end."""
        return any(each.until == math.inf for each in self.leaving(post))

    def _put_off(self, post: Post) -> None:
        """The next is started after a pause, and the one after that after a longer one."""
        post.due = time.monotonic() + post.pause
        post.pause = min(post.pause * 2, LONGEST_PAUSE)

    def _kill_the_hung(self) -> None:
        """But not after a pause of the whole machine, in which nobody's loop turned."""
        now = time.monotonic()
        paused, self._turned = now - self._turned > STEP * 5, now
        for child in self.children():
            if now > child.until:
                self.kill(child, LATE)
            last = max(self._nest.pulses.last(child.place), child.began)
            silent = now - last > HUNG if child.is_well else now - child.began > BEGIN_IN
            if silent and not paused:
                self.kill(child, "a process of the gateway hangs: it is killed")

    def kill(self, child: Child, event: str) -> None:
        """Say why, once, and kill it, unless it has ended."""
        if child.is_gone:
            return
        if not child.is_killed:
            self._log.warn(event, process=child.name, pid=child.pid)
            child.is_killed = True
        child.signal(signal.SIGKILL)

    def wait_for_the_end(self, children: Collection[Child], seconds: float) -> None:
        """Until these have ended, by themselves or not."""

        def over() -> bool:
            return all(each.is_gone for each in children)

        if not self.wait(over, seconds):
            for child in children:
                self.kill(child, LATE)
            self.wait(over, DIE_IN)


def _ended(status: int | None) -> str:
    """How a process ended, in words."""
    if status is None:
        return "nobody knows how"
    if status >= 0:
        return f"with exit code {status}"
    named = {each.value: each.name for each in signal.Signals}
    return f"by signal {named.get(-status, -status)}"
