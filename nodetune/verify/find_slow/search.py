"""The search: which runs it needs, one round after another, and what they show. Pure.

Every node by itself; the ring of all nodes as pairs; every domain with every other; then repeats of what is in doubt, until
the odds say slow or well, or the rounds are spent; at last the others run as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from math import exp, log, log2
from statistics import median

from nodetune.statistics.distributions import binomial_tail
from nodetune.statistics.likelihood import BAD, level, middle, unsure
from nodetune.statistics.thresholds import FLEET_DRIFT, LOW_DEVIATIONS, SMALLEST_LOSS, USUAL_NOISE, WITNESS_CHANCE
from nodetune.verify.find_slow import culprits, schedule
from nodetune.verify.find_slow.classify import Conclusions, conclude, own_odds
from nodetune.verify.find_slow.model import (
    LINK,
    PAIRS,
    PATH,
    SOLO,
    UPLINK,
    WHOLE,
    Answer,
    Fleet,
    Part,
    Result,
    Round,
    Run,
)

MIN_ROUNDS = 10
"""The bound of rounds of small fleets: fewer pairs run at once there."""

Search = Generator[Round, Sequence[Answer], Result]


def most_rounds(count: int) -> int:
    """Return the bound of rounds for a number of nodes."""
    return max(MIN_ROUNDS, int(log2(count)) + 4) + (count % 2 and count > 2)


def search(fleet: Fleet, more: int = 0) -> Search:
    """Yield rounds, receive their answers in the order of the groups, and return what is slow.

    `more`: rounds beyond the bound, for what it leaves undecided.
    """
    work = _Work(fleet)
    yield from work.alone()
    for pairs in schedule.ring(len(fleet.nodes)):
        yield from work.pairs(pairs, ring=True)
    if max(fleet.domains) >= 3:  # with fewer domains, the ring has shown every link
        yield from work.pairs(schedule.tournament(fleet, 0), loaded=True)
    turn = 1
    while work.conclude().doubts and len(work.rounds) < most_rounds(len(fleet.nodes)) + more - 1:
        turn += 1
        pairs = schedule.Repeats(fleet, work.found, work.met, turn).pairs()
        if work.found.doubtful(UPLINK) and (turn % 2 or not pairs):  # by turns, as it takes all nodes
            yield from work.pairs(schedule.tournament(fleet, turn), loaded=True)
        elif pairs:
            yield from work.pairs(pairs)
        else:
            break
    yield from work.proof()
    return work.result()


class _Work:
    """The state of a search."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.rounds: list[Round] = []
        self.met: Counter[tuple[int, ...]] = Counter()
        self.found = Conclusions([], set(), set())
        self._solo: list[Sequence[float]] = [() for _ in fleet.nodes]
        self._solo_runs: list[Run] = []
        self._runs: list[Run] = []
        self._unread: list[Run] = []
        self._whole = Answer()
        self._unseen = 0.0  # the largest drift that a repeat may hide

    def _ask(
        self, kind: str, groups: Sequence[tuple[int, ...]], loaded: bool = False
    ) -> Generator[Round, Sequence[Answer], list[Run]]:
        """Have a round carried out. Return the runs that were measured."""
        wanted = Round(kind, tuple(groups), loaded)
        answers = yield wanted
        number = len(self.rounds)
        self.rounds.append(wanted)
        return [
            Run(group, _logarithms(answer), answer.fault, number)
            for group, answer in zip(groups, answers, strict=True)
            if answer.figures or answer.fault
        ]

    def alone(self) -> Generator[Round, Sequence[Answer], None]:
        self._solo_runs = yield from self._ask(SOLO, [(node,) for node in range(len(self._fleet.nodes))])
        for run in self._solo_runs:
            self._solo[run.nodes[0]] = run.rails

    def pairs(
        self, groups: Sequence[tuple[int, ...]], ring: bool = False, loaded: bool = False
    ) -> Generator[Round, Sequence[Answer], None]:
        runs = yield from self._ask(PAIRS, groups, loaded)
        self.met.update(run.nodes for run in runs)
        domain = self._fleet.domains
        self._runs += self._steady(
            [replace(run, ring=ring, near=domain[run.nodes[0]] == domain[run.nodes[1]], loaded=loaded) for run in runs]
        )

    def _steady(self, runs: list[Run]) -> list[Run]:
        """Take a drift of the whole fleet out of a round: what its near pairs moved against the ring.

        Where that may be a drift, or witnesses that fell by chance, the round says only what is broken.
        """
        moved, sure = (self._ring_moved(runs), True) if runs and runs[0].ring else self._moved(runs)
        if not moved:
            return runs
        if not sure:
            self._unread += [run for run in runs if min(run.rails) > BAD]
            return [run for run in runs if min(run.rails) <= BAD]
        return [replace(run, rails=tuple(rail - moved if rail > BAD else rail for rail in run.rails)) for run in runs]

    def _ring_moved(self, runs: Sequence[Run]) -> float:
        """Compare the pairs of a later round of the ring with the others of its first."""
        before = [middle(run.rails) for run in self._runs if run.ring and run.near and run.round == 1]
        now = [middle(run.rails) for run in runs if run.near]
        moved = level(now) - level(before) if min(len(now), len(before)) >= 4 else 0.0
        return moved if abs(moved) > self._bound(len(now)) else 0.0

    def _moved(self, runs: Sequence[Run]) -> tuple[float, bool]:
        """Compare repeated good pairs with their figures of the ring. Return the move, and whether it is surely no chance."""
        first = {run.nodes: middle(run.rails) for run in self._runs if run.ring and run.near}
        pairs = [(middle(run.rails), first[run.nodes]) for run in runs if run.nodes in first and self._is_witness(run)]
        changes = [now - then for now, then in pairs if min(now, then) > BAD]
        moved = median(changes) if changes else 0.0
        bound = self._bound(len(changes))
        if not any(run.loaded for run in runs):
            self._unseen = max(self._unseen, bound)
        if abs(moved) <= bound:
            return 0.0, True
        same = sum(change * moved > 0 and abs(change) > bound for change in changes)
        return moved, self._chance(same, len(changes)) < WITNESS_CHANCE

    def _chance(self, least: int, of: int) -> float:
        """Return the chance that at least this number of witnesses fell one by one."""
        count, every, _ = self.found.falls
        one = (1 + count) / (4 + every)
        return binomial_tail(least, of, one)

    def _bound(self, count: int) -> float:
        return max(FLEET_DRIFT, unsure(self.found.noise or USUAL_NOISE, count))

    def _is_witness(self, run: Run) -> bool:
        """Return whether a repeated pair is good. A path in doubt was chosen for a low figure, and the next is mostly higher."""
        return set(run.nodes) <= self.found.clear and Part(PATH, run.nodes) not in self.found.doubts

    def conclude(self) -> Conclusions:
        self.found = conclude(self._fleet, self._runs, own_odds(self._solo), self._unseen)
        return self.found

    def proof(self) -> Generator[Round, Sequence[Answer], None]:
        """Run the others as one."""
        away = {part.at[0] for part in self.found.named if part.kind == UPLINK}
        away |= {part.at[0] for part in self.found.named if part.kind == LINK}
        out = self.found.nodes() | {part.at[0] for part in self.found.named if part.kind == PATH}
        rest = tuple(node for node, domain in enumerate(self._fleet.domains) if node not in out and domain not in away)
        if len(rest) > 1:
            (self._whole,) = yield Round(WHOLE, (rest,))
            self.rounds.append(Round(WHOLE, (rest,)))

    def result(self) -> Result:
        found, whole = self.found, self._whole
        left = None
        if whole.figures and found.figures:
            short = middle(_logarithms(whole)) - found.level
            left = 1 - exp(min(0.0, short)) if short < -max(SMALLEST_LOSS / 2, LOW_DEVIATIONS * found.noise) else 0.0
        elif whole.fault:
            left = 1.0
        return Result(
            culprits=culprits.culprits(self._fleet, self._runs, self._solo_runs, found),
            doubts=culprits.doubts(self._fleet, self._runs, found),
            left=left,
            whole=self.rounds[-1].groups[0] if self.rounds and self.rounds[-1].kind == WHOLE else (),
            whole_figure=middle(whole.figures) if whole.figures else 0.0,
            whole_fault=whole.fault,
            level=exp(found.level) if found.figures else 0.0,
            noise=found.noise,
            falls=found.falls,
            rounds=tuple(self.rounds),
            runs=(*self._solo_runs, *self._runs, *self._unread),
        )


def _logarithms(answer: Answer) -> tuple[float, ...]:
    """Return the figures as logarithms; a fault without figures is one bad rail."""
    if answer.fault and not any(answer.figures):
        return (BAD,) * max(1, len(answer.figures))
    return tuple(log(each) if each > 0 else BAD for each in answer.figures)
