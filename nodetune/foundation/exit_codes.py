"""The exit codes of every command (docs/exit-codes.md). Frozen: scripts of other people depend on them. The highest wins.

`status` lets FINDINGS win over INCOMPLETE: see `of_status`.

Which of them a command ends with: `exit_code` in audit/summary.py and verify/exit_code.py, `code` in the results of remediation, guard and provision.
The programs that Slurm calls on a node have codes of their own: guard/node/invocation.py.
"""

OK = 0
"""Done, or nothing to report."""

FINDINGS = 1
"""Something was found: findings at or above --fail-on, or a difference."""

USAGE = 2
"""An option, a file or an inventory is wrong. Nothing was done."""

INCOMPLETE = 3
"""A host was not reached, or facts are unknown that the verdict needs."""

END_STATE_MISSED = 4
"""A change did not reach its end state."""

TOO_SLOW = 5
"""A figure is below target, or became worse."""

INTERRUPTED = 130
"""Ctrl-C, as a shell reports SIGINT."""

READER_GONE = 141
"""Whoever read the output closed the pipe, as a shell reports SIGPIPE."""


def of_status(*, failing: bool, incomplete: bool) -> int:
    """Return the exit code where an open fault comes before hosts that are unknown."""
    return FINDINGS if failing else INCOMPLETE if incomplete else OK
