"""What may go wrong, in the two sizes that matter to a run."""


class ChangeError(Exception):
    """One change cannot be made or undone. One line: what, where, why. The other changes go on."""


class StopError(Exception):
    """Nothing more may be done on this host. One line: what, where, why."""


class WaitError(StopError):
    """What disturbs work has to wait, and why. Other groups of changes go on."""


def why(error):
    """Return the reason of an OSError in lower case, without its number and path."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
