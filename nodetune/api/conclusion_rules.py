"""Rules over several conclusions: which fault explains which, and which of them fail a command. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodetune.api.conclusion import OPEN, Conclusion
from nodetune.api.model import at_least
from nodetune.foundation import by_key


def leaders(found: Sequence[Conclusion]) -> list[int]:
    """Return for each conclusion the place of the one that explains it in the end, or its own.

    What explains another is of the same host, or of the fleet. One that is not there explains nothing, and no fault itself.
    """
    places = by_key(((each.fault, host), place) for place, each in enumerate(found) for host in each.hosts or ("",))
    above = [_above(place, each, places) for place, each in enumerate(found)]
    return [_end(place, above) for place in range(len(found))]


def _above(place: int, each: Conclusion, places: dict[tuple[str, str], list[int]]) -> int:
    if not each.explained_by or each.explained_by == each.fault:
        return place
    known = (places.get((each.explained_by, host)) for host in (*each.hosts, ""))
    return next((one[0] for one in known if one), place)


def _end(place: int, above: Sequence[int]) -> int:
    """Follow what explains what; of a circle, its first place explains the others."""
    seen = [place]
    while above[seen[-1]] not in seen:
        seen.append(above[seen[-1]])
    last = above[seen[-1]]
    return last if last == seen[-1] else min(seen[seen.index(last) :])


def is_failing(found: Iterable[Conclusion], fail_on: str) -> bool:
    """Return whether one of these is open and of `fail_on` or above."""
    counted = at_least(fail_on)
    return any(each.state == OPEN and each.severity in counted for each in found)
