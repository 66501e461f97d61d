"""What may go wrong, in the two sizes that matter to a run."""

import contextlib


class ChangeError(Exception):
    """One change cannot be made or undone. One line: what, where, why. The other changes continue."""


class StopError(Exception):
    """Nothing more may be done on this host. One line: what, where, why."""


class WaitError(StopError):
    """What disturbs work has to wait, and why. Other groups of changes continue."""


@contextlib.contextmanager
def reported(module, result=None):
    """Turn a problem into the failure of an Ansible module, along with what `result` holds by then."""
    try:
        yield
    except (ChangeError, StopError) as problem:
        module.fail_json(msg=str(problem), **(result.data() if result else {}))


def why(error):
    """Return the reason of an OSError in lower case, without its number and path."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
