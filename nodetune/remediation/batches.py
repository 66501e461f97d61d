"""The order in which an apply or an upgrade works on its hosts: canaries first, then batches. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from nodetune.foundation import UserError


class BatchError(UserError):
    """A --batch that means nothing."""


def batches(hosts: Sequence[str], canary: int, batch: str) -> list[list[str]]:
    """Split the hosts: the canaries first, then batches of this size ("10", "25%", "" = all). Raise BatchError."""
    first = list(hosts[:canary]) if canary and len(hosts) > canary else []
    rest = list(hosts[len(first) :])
    step = size(batch, len(hosts))
    return [part for part in [first, *(rest[at : at + step] for at in range(0, len(rest), step))] if part]


def size(batch: str, hosts: int) -> int:
    """Return how many of the hosts a --batch means. Raise BatchError."""
    if not batch:
        return max(hosts, 1)
    found = re.fullmatch(r"(\d{1,6})(%?)", batch.strip())
    number = int(found[1]) if found else 0
    if not found or number < 1 or (found[2] and number > 100):
        raise BatchError(f"--batch {batch!r}: give a number of hosts such as 10, or a percentage such as 25%")
    return max(1, math.ceil(hosts * number / 100)) if found[2] else number
