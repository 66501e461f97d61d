"""Small modules that are independent of GPUs and hosts."""

from __future__ import annotations


class UserError(ValueError):
    """Bad input: its text is one line for the user (what, where, what to do). The command exits with code 2."""
