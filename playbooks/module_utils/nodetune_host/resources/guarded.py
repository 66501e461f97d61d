"""A file of the guard's, as `file`: not taken away while Slurm still calls it; {"folder"} names a folder to go with it.

Slurm drains every node whose prolog is missing: a prolog that is removed too early costs a whole site.
"""

from .. import scheduler
from ..problem import ChangeError
from . import file

read = file.read
same = file.same
show = file.show
about = file.about
label = file.label


def wanted(change, now):
    """Return the state as for `file`; removing a file also removes its empty folders up to `folder`."""
    after = file.wanted(change, now)
    return dict(after, folder=change.get("folder")) if after["content"] is None else after


def put(change, state):
    """Write the file. Raise ChangeError while the running Slurm calls it, or if slurmd does not answer."""
    if state["content"] is None:
        _refuse_if_called(change["path"])
    file.put(change, state)


def _refuse_if_called(path):
    try:
        named = path in scheduler.scontrol("show", "config")
    except ChangeError as problem:
        if not scheduler.process_of("slurmd")[0]:
            return
        raise ChangeError(f"left there, for whether Slurm still calls it cannot be asked: {problem}") from None
    if named:
        raise ChangeError(
            "left there, for Slurm still calls it and would drain the node without it: take its lines out of slurm.conf, "
            "then: scontrol reconfigure"
        )
