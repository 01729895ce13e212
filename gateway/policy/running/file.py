"""The policy's file while the gateway runs: what comes of it, once it stays as it is."""

import asyncio
from collections.abc import Callable

from adapters.documents.problems import DocumentErrors, Problem
from gateway.policy.policy import Policy
from gateway.policy.running.examiner import Examined, Examiner
from gateway.policy.running.found import Found, find

# Seconds for which a changed file must stay as it is, before it counts as written.
STEADY = 0.25
# Seconds that a file which is wrong, or goes on changing, has to become whole.
PATIENCE = 1.0


class PolicyFile:
    """Reads the file and the cases beside it; `seen` is what was examined last.

    `failed` hears of faults of ours; `steady` and `patience` are seconds.
    """

    def __init__(
        self,
        examiner: Examiner,
        failed: Callable[[Exception, str], None],
        *,
        steady: float = STEADY,
        patience: float = PATIENCE,
    ) -> None:
        self.seen = Found(b"", "")
        self.steady = steady
        self.patience = patience
        self._examiner = examiner
        self._failed = failed

    async def changed(self, like: Policy, *, again: bool) -> Examined | DocumentErrors | None:
        """What comes of the file once it stays as it is; None where it is as it was.

        Where it is to be tried `again`, also where it is as it was.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + self.patience
        found = await self._find()
        if again and found == self.seen:
            return await asyncio.to_thread(self._examined, found, like)
        outcome: Examined | DocumentErrors | None = None
        while found != self.seen:
            await asyncio.sleep(self.steady)
            now = await self._find()
            if now != found:
                found, outcome = now, None
                if clock() < until:
                    continue
            if outcome is None:
                outcome = await asyncio.to_thread(self._examined, found, like)
            sound = isinstance(outcome, Examined) and not outcome.failing
            if sound or clock() >= until:
                self.seen = found
                return outcome
        return None

    async def _find(self) -> Found:
        return await asyncio.to_thread(find, self._examiner.path)

    def _examined(self, found: Found, like: Policy) -> Examined | DocumentErrors:
        """In a thread of its own; whatever goes wrong there is a reason not to take the file."""
        try:
            return self._examiner.examined(found, like)
        except DocumentErrors as error:
            return error
        except Exception as error:  # noqa: BLE001 - what runs goes on, whatever it is
            self._failed(error, "")
            text = f"it cannot be checked ({type(error).__name__})"
            return DocumentErrors([Problem(str(self._examiner.path), 0, 0, text)])
