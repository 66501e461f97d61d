"""A file of the guard, like `file`, that is kept while Slurm calls it; {"folder"} is removed with it.

Slurm drains every node whose prolog is missing: removing a prolog too early would drain a whole site.
"""

from .. import scheduler
from ..problem import ChangeError
from . import file
from .file import about, label, place, read, same, show


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
        raise ChangeError(f"kept, because it is unknown whether Slurm still calls it: {problem}") from None
    if named:
        raise ChangeError(
            "kept, because Slurm still calls it and would drain the node without it: remove its lines from "
            "slurm.conf, then: scontrol reconfigure"
        )
