"""The error that a user can cause and fix."""

from __future__ import annotations


class UserError(ValueError):
    """Bad input: its text is one line for the user (what, where, what to do). The command line ends with exit code 2."""
