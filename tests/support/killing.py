"""Work that is killed before the k-th change of a file: every moment at which a kill makes a difference."""

import itertools
import os
import signal
import sys
from types import BuiltinFunctionType

CHANGING = {"chmod", "chown", "fchmod", "fchown", "fsync", "ftruncate", "link", "mkdir", "open", "rename", "replace"}
CHANGING |= {"rmdir", "symlink", "truncate", "unlink", "utime", "write", "writelines"}


def before_each_change(work):
    """Do `work` in a child that is killed before its k-th change, for k = 1, 2 …; yields k after each, until it lives."""
    for number in itertools.count(1):
        if survives(work, number):
            return
        yield number


def survives(work, number):
    """Do `work` in a child that is killed before its change of this number. Return whether it lived."""
    pid = os.fork()
    if pid == 0:
        try:
            sys.setprofile(_killer(number))
            work()
        finally:
            sys.setprofile(None)
            os._exit(0 if sys.exc_info()[0] is None else 1)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), "it failed before it was killed"
    return status == 0


def _killer(number):
    calls = itertools.count(1)

    def heard(_frame, event, called):
        if event == "c_call" and _changes_something(called) and next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return heard


def _changes_something(called):
    return isinstance(called, BuiltinFunctionType) and called.__name__ in CHANGING
