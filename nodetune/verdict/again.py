"""What to measure once more before anything is blamed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodetune.verdict import PASS, SHORT, Figure, Verdict, figures, judge
from nodetune.verdict.figures import OF_PAIRS
from nodetune.verdict.suites import Item
from nodetune.verdict.suspects import gpus
from nodetune.verdict.suspects import hosts as hosts_of

OTHER_PARTNERS = 2
"""A pair of GPUs is measured again beside this many other pairs of each of its two."""

MOST_MEETING = 6
"""Hosts of short pairs: more would take longer than a measurement may, and are no question of single parts any more."""


def items(short: Sequence[Verdict], measured: Sequence[Item], count: int) -> list[Item]:
    """Of the items that one host measured by itself, those with something short, narrowed to it. `count`: GPUs of the host."""
    found = []
    for item in measured:
        mine = [each.figure for each in short if each.figure.measurement == item["name"]]
        if mine:
            found.append({**item, "options": {**item["options"], **_narrowed(item, mine, count)}})
    return found


def _narrowed(item: Item, mine: Sequence[Figure], count: int) -> dict[str, object]:
    """Options that make it measure these subjects only; nothing where it measures one thing, or all at once, anyhow."""
    if any(each.about.get("together") for each in mine):
        return {}
    subjects = [each.subject for each in mine]
    if item["name"] == "gpu_p2p":
        return {"only": [list(pair) for pair in _pairs(subjects, count)]}
    named = sorted({int(gpu.removeprefix("GPU")) for subject in subjects for gpu in gpus(subject)})
    return {"gpus": named} if named and item["name"].startswith(("gpu_", "gemm")) else {}


def _pairs(subjects: Iterable[str], count: int) -> list[tuple[int, int]]:
    """The short pairs, and some with another partner for either end."""
    found: dict[tuple[int, int], None] = {}
    for subject in subjects:
        named = [int(gpu.removeprefix("GPU")) for gpu in gpus(subject)]
        if len(named) != 2:  # a host's own nonsense
            continue
        first, second = named
        others = [gpu for gpu in range(count) if gpu not in (first, second)][:OTHER_PARTNERS]
        for pair in ((first, second), *((first, other) for other in others), *((other, second) for other in others)):
            found[pair] = None
    return list(found)


def meeting(short: Iterable[Verdict], hosts: Iterable[str]) -> list[str]:
    """The hosts that meet again: those of short pairs, and enough others that each has a partner that was not short."""
    known = list(hosts)
    named = [host for each in short if each.figure.measurement in OF_PAIRS for host in hosts_of(each.figure.subject)]
    wanted = list(dict.fromkeys(host for host in named if host in known))[:MOST_MEETING]
    others = [host for host in known if host not in wanted]
    return [*wanted, *others[:OTHER_PARTNERS]] if wanted else []


def confirmed(verdicts: Iterable[Verdict], second: Iterable[Figure]) -> list[Verdict]:
    """The verdicts with what the second measurement said of those that were short."""
    known = {figures.place(each): each for each in second}
    return [
        judge.again(each, known.get(figures.place(each.figure))) if each.status == SHORT else each for each in verdicts
    ]


def others(verdicts: Iterable[Verdict], second: Iterable[Figure]) -> list[Verdict]:
    """What was only measured the second time (pairs with another partner), by what their sibling fell short of."""
    every = list(verdicts)
    known = {figures.place(each.figure) for each in every}
    bounds = {figures.place(each.figure)[:-1]: each.expected for each in every if each.status == SHORT}
    found = []
    for figure in second:
        expected = bounds.get(figures.place(figure)[:-1])
        if expected and figures.place(figure) not in known:
            found.append(Verdict(figure, PASS if expected.met_by(figure) else SHORT, expected))
    return found
