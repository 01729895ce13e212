"""What a process gives up before it serves: a crash must not write its memory, keys included."""

import ctypes
import os
import resource
import sys

from gateway.settings import StartRefused

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """No core file of this process and of those that it forks; StartRefused where one is left.

    The limit keeps the kernel from writing a file; a program that collects cores gets them whatever
    the limit says, but none of a process that is not dumpable. Nor can others of the same account
    read the memory of such a process.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
            reason = os.strerror(ctypes.get_errno()).lower()
            raise StartRefused(
                f"core dumps cannot be turned off: {reason}; let the sandbox allow prctl"
            )
