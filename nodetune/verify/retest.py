"""Select what to measure again before a part is suspected. Pure."""

from collections.abc import Iterable, Sequence

from nodetune.verify import catalogue, evaluate, figures
from nodetune.verify.catalogue import takes_two_hosts
from nodetune.verify.diagnosis import gpus
from nodetune.verify.diagnosis import hosts as hosts_of
from nodetune.verify.model import PASS, SHORT, Figure, Verdict
from nodetune.verify.suites import Item

OTHER_PARTNERS = 2
"""A pair of GPUs is measured again along with this many other pairs of each of its two."""

MAX_RETESTED = 6
"""Limit for hosts of slow pairs: more would exceed the deadline, and the fault is then not a single part."""


def items(short: Sequence[Verdict], measured: Sequence[Item], count: int) -> list[Item]:
    """Return a host's own items with figures below target, narrowed to these. `count`: its GPUs."""
    found = []
    for item in measured:
        mine = [each.figure for each in short if each.figure.measurement == item["name"]]
        if mine:
            found.append({**item, "options": {**item["options"], **_narrowed(item, mine, count)}})
    return found


def _narrowed(item: Item, mine: Sequence[Figure], count: int) -> dict[str, object]:
    """Return options that measure only these subjects; empty if the item has one subject or measures all at once."""
    if any(each.about.get("together") for each in mine):
        return {}
    subjects = [each.subject for each in mine]
    if item["name"] == "gpu_p2p":
        return {"only": [list(pair) for pair in _pairs(subjects, count)]}
    named = sorted({int(gpu.removeprefix("GPU")) for subject in subjects for gpu in gpus(subject)})
    return {"gpus": named} if named and catalogue.of(item["name"]).scope == "gpus" else {}


def _pairs(subjects: Iterable[str], count: int) -> list[tuple[int, int]]:
    """Return the pairs below target, and some pairs with another partner for either end."""
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
    """Return the hosts to measure again: those of pairs below target, and enough others as good partners."""
    known = list(hosts)
    named = [
        host for each in short if takes_two_hosts(each.figure.measurement) for host in hosts_of(each.figure.subject)
    ]
    wanted = list(dict.fromkeys(host for host in named if host in known))[:MAX_RETESTED]
    others = [host for host in known if host not in wanted]
    return [*wanted, *others[:OTHER_PARTNERS]] if wanted else []


def confirmed(verdicts: Iterable[Verdict], second: Iterable[Figure]) -> list[Verdict]:
    """Return the verdicts with the second measurement of those below target."""
    known = {figures.place(each): each for each in second}
    return [
        evaluate.again(each, known.get(figures.place(each.figure))) if each.status == SHORT else each
        for each in verdicts
    ]


def others(verdicts: Iterable[Verdict], second: Iterable[Figure]) -> list[Verdict]:
    """Judge figures of only the second measurement (pairs with another partner) by the target of their peer."""
    every = list(verdicts)
    known = {figures.place(each.figure) for each in every}
    bounds = {figures.place(each.figure)[:-1]: each.expected for each in every if each.status == SHORT}
    found = []
    for figure in second:
        expected = bounds.get(figures.place(figure)[:-1])
        if expected and figures.place(figure) not in known:
            found.append(evaluate.settled(Verdict(figure, PASS if expected.met_by(figure) else SHORT, expected)))
    return found
