"""What may go wrong, in the two sizes that matter to a run."""


class Problem(Exception):
    """One change cannot be made or taken back. One line: what, where, why. The other changes go on."""


class Stop(Exception):
    """Nothing more may be done on this host. One line: what, where, why."""


class Waits(Stop):
    """What disturbs work has to wait, and why. Other groups of changes go on."""


def why(error):
    """The reason of an OSError in lower case, without its number and path."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
