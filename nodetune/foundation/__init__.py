"""Small parts that know nothing of GPUs or hosts."""

from __future__ import annotations


class UserError(ValueError):
    """Bad input: its text is one line for the user (what, where, what to do). The command line ends with exit code 2."""
