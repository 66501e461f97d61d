"""Host names folded and unfolded: gpu001, gpu002 … ↔ gpu[001-128]. The only user of ClusterShell."""

import re
from collections.abc import Iterable
from functools import lru_cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

MAX_HOSTS = 65536
"""A node set with more hosts than this is a typing error (and would not fit into memory)."""


def fold(hosts: Iterable[str]) -> str:
    """Fold host names into one node set, in natural order. Other names stay as they are."""
    return _fold(tuple(hosts))


@lru_cache(maxsize=256)  # the same hosts fail many checks
def _fold(hosts: tuple[str, ...]) -> str:
    plain: list[str] = []
    odd: list[str] = []
    for host in hosts:
        (odd if set(host) & set("[]{}!&^,@:* \t%/") or not host else plain).append(host)
    try:
        folded = str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError, OverflowError):
        folded = ",".join(sorted(plain))
    return ",".join(([folded] if folded else []) + sorted(odd))


NUMBERED = re.compile(r"(.*?)(\d{1,18})")


def for_slurm(hosts: Iterable[str]) -> str:
    """Fold host names as Slurm reads and sorts them: only by the number at their end, which is all that it takes everywhere."""
    found: dict[str, set[str]] = {}
    for host in hosts:
        parts = NUMBERED.fullmatch(host)
        found.setdefault(parts[1] if parts else host, set()).add(parts[2] if parts else "")
    return ",".join(prefix + part for prefix in sorted(found) for part in _numbers(found[prefix]))


def _numbers(texts: set[str]) -> list[str]:
    """Return the ends of names with one prefix: the empty one by itself, all others within one pair of brackets."""
    runs: list[list[str]] = []
    for text in sorted(texts - {""}, key=lambda text: (int(text), text)):
        last = runs[-1][-1] if runs else ""
        alike = len(last) == len(text) or not (last.startswith("0") or text.startswith("0"))
        if last and alike and int(last) + 1 == int(text):
            runs[-1][1:] = [text]
        else:
            runs.append([text])
    folded = ",".join("-".join(run) for run in runs)
    return ([""] if "" in texts else []) + ([f"[{folded}]" if len(texts - {""}) > 1 else folded] if runs else [])


def unfold(text: str) -> list[str]:
    """Return the hosts of a node set, in its order. Raise ValueError if it is invalid or too large."""
    count = 1
    for content in re.findall(r"\[([^\]]*)\]", text):
        count *= max(1, sum(_length(each) for each in content.split(",")))
    if count > MAX_HOSTS:
        raise ValueError(f"{text!r} names {count} hosts: at most {MAX_HOSTS} are possible")
    try:
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))  # this machine's groups are not the fleet's
    except (NodeSetException, ValueError) as problem:
        why = str(problem).partition(":")[0]  # after it the text is quoted again
        raise ValueError(f"{text!r} is not a valid node set ({why}): write it like gpu[001-128,200]") from None


def _length(piece: str) -> int:
    found = re.fullmatch(r"\s*(\d{1,18})-(\d{1,18})(?:/(\d{1,9}))?\s*", piece)
    return max(1, (int(found[2]) - int(found[1])) // max(1, int(found[3] or 1)) + 1) if found else 1
