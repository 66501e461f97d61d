"""A finding about one host among others."""

from __future__ import annotations

from dataclasses import dataclass

from nodetune.model import Finding


@dataclass(frozen=True)
class FleetFinding(Finding):
    """The verdict of one comparison on one host.

    `group` is what the host was compared within, `compared` how many hosts of it could be, and `agree` how many of these
    have what is wanted. `decided` is false where so few agree that nobody can be called odd.
    """

    group: str = ""
    compared: int = 0
    agree: int = 0
    decided: bool = True
