"""Screening: find settings worth a confirmation, by randomised blocks with the default, in a race: losers are dropped early."""

import math
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence

from nodetune.statistics import thresholds
from nodetune.statistics.distributions import half_width
from nodetune.statistics.outliers import robust
from nodetune.tune import confirm, space
from nodetune.tune.model import DEFAULT, Bench, Case, Setting, objective
from nodetune.tune.trials import BudgetError, Trials

PHASE = "screening"
MAX_SURVIVORS = 3
"""Number of settings that is not halved further but measured for the remaining rounds."""


MAX_SIMPLER = 3
"""Number of simpler settings that are compared with the best again."""


MAX_TO_EXCLUDE = 6
"""Number of rounds that exclude gains and resolve cases where nothing looks better: less than a confirmation, which could not do more."""


def expected(bench: Bench) -> int:
    """Return the approximate maximum number of trials for screening all settings."""
    most = 2**space.BEST_TO_COMBINE - space.BEST_TO_COMBINE
    combined = 0 if space.enumerated(bench.parameters) else _rounds(bench, most)
    return _rounds(bench, len(space.first(bench))) + combined + bench.rounds * _with_controls(bench, 1 + MAX_SIMPLER)


def _rounds(bench: Bench, arms: int) -> int:
    """Return the trials of successive halving."""
    made = 0
    for number in range(1, 99):
        made += _with_controls(bench, arms)
        if arms <= MAX_SURVIVORS and number >= bench.rounds:
            break
        arms = (arms + 1) // 2 if arms > MAX_SURVIVORS else arms
    return made


def _with_controls(bench: Bench, arms: int) -> int:
    return arms + math.ceil(arms / bench.arms)


class Screening:
    """The screening of one tuning. `reserve`: number of trials for which time must remain."""

    def __init__(self, trials: Trials, reserve: int, generator: random.Random) -> None:
        self._trials, self._reserve, self._generator = trials, reserve, generator
        self.measured: dict[Setting, list[dict[str, float]]] = {}
        self.is_complete = True
        """Whether no round of the race was skipped or cut for lack of time."""

    def finalists(self) -> list[Setting]:
        """Return the settings that may gain enough to be accepted, the best first; of equal ones the simplest."""
        bench = self._trials.bench
        ranking = self._simplest_first(self._halved(space.first(bench)))
        if not space.enumerated(bench.parameters):
            combined = space.combined(bench, self._simplest_first(self._ranked(list(self.measured))))
            ranking = self._simplest_first(self._halved([*combined, *ranking[:1]])) if combined else ranking
        simpler = self._simpler(ranking[0]) if ranking else []
        compared = self._simplest_first(self._compared([*simpler, ranking[0]])) if simpler else []
        candidates = [*compared, *(setting for setting in ranking if setting not in compared)]
        candidates = self._still_undecided(
            [setting for setting in candidates if self._may_gain(setting)] if self.is_complete else list(self.measured)
        )
        return [setting for setting in self._simplest_first(self._ranked(candidates)) if self._may_gain(setting)]

    def _still_undecided(self, arms: Sequence[Setting]) -> list[Setting]:
        """Return the arms that may gain enough, after rounds that exclude a gain or resolve the cases, where none looks good."""
        undecided = self.undecided(arms)
        for _ in range(MAX_TO_EXCLUDE):
            fits = self._trials.left >= 2 * thresholds.LOOKS[0][0] * self._trials.seconds
            if fits and any(self.score(setting) > thresholds.MIN_GAIN for setting in undecided):
                break
            best = undecided or (self._ranked(arms or list(self.measured))[:MAX_SURVIVORS] if self._unresolved else [])
            if not best or not self._round(best, reserve=0, cases=self._counting):
                break
            undecided = self.undecided(arms)
        return undecided

    @property
    def _unresolved(self) -> bool:
        """Whether differences that matter may be unseen in a case that counts."""
        resolved = self.resolved()
        return any(resolved.get(case.id, math.inf) > thresholds.RESOLVED for case in self._counting)

    @property
    def _counting(self) -> list[Case]:
        """The cases that can refuse a setting, without those whose noise is that of CPUs."""
        return [case for case in self._trials.cases if case.judged and not case.coarse]

    def undecided(self, arms: Iterable[Setting]) -> list[Setting]:
        """Return the arms whose gain is not excluded: neither by the interval of their blocks nor by harm."""
        candidates = [setting for setting in arms if setting not in self._trials.dropped and not self._harms(setting)]
        return [setting for setting in candidates if self._high(setting) > thresholds.MIN_GAIN]

    @property
    def tried(self) -> bool:
        """Whether the whole space was measured."""
        first = space.first(self._trials.bench)
        return space.enumerated(self._trials.bench.parameters) and {*self.measured, *self._trials.dropped}.issuperset(
            first
        )

    def _high(self, setting: Setting) -> float:
        """Return the largest gain of the objective that the blocks of a setting allow."""
        own_gains = [self._objective(gains) for gains in self.measured[setting]]
        all_gains = [[self._objective(gains) for gains in blocks] for blocks in self.measured.values()]
        return statistics.fmean(own_gains) + half_width(all_gains, len(own_gains))

    def resolved(self) -> dict[str, float]:
        """Return the resolution of each case that counts, for the settings measured most, as far as it is known."""
        resolved = {}
        for case in self._counting:
            by_setting = [self._of_case(setting, case.id) for setting in self.measured]
            most = max(map(len, by_setting), default=0)
            resolved[case.id] = half_width(by_setting, most, thresholds.SHARED_DEFAULT)
        return {case: width for case, width in resolved.items() if math.isfinite(width)}

    def gains(self) -> dict[Setting, dict[str, float]]:
        """Return the gain of each setting in each case: medians of logarithms."""
        settings = [setting for setting in self.measured if setting not in self._trials.dropped]
        return {
            setting: {case: statistics.median(self._of_case(setting, case)) for case in self.measured[setting][0]}
            for setting in settings
        }

    def _may_gain(self, setting: Setting) -> bool:
        return self.score(setting) + thresholds.SURE_ERRORS * self._error(setting) > thresholds.MIN_GAIN

    def _simplest_first(self, ranking: Sequence[Setting]) -> list[Setting]:
        """Return the settings better than the default; of those as good as the best, the simplest first."""
        ranking = [setting for setting in ranking if self.score(setting) > 0]
        if not ranking:
            return []
        limit = self.score(ranking[0]) - max(thresholds.EQUAL_GAIN, self._error(ranking[0]))
        equal = [setting for setting in ranking if self.score(setting) > limit]
        simple = sorted(equal, key=lambda setting: space.simplicity(self._trials.bench, setting))
        return [*simple, *(setting for setting in ranking if setting not in equal)]

    def _simpler(self, best: Setting) -> list[Setting]:
        """Return settings with a subset of these changes that may be as good but rank lower by chance."""
        bench = self._trials.bench
        simpler = [
            setting
            for setting in self._ranked(list(self.measured))
            if space.is_simpler(bench, setting, best)
            and self.score(setting)
            > self.score(best) - max(thresholds.EQUAL_GAIN, thresholds.SURE_ERRORS * self._error(setting))
        ]
        return sorted(simpler, key=lambda setting: space.simplicity(bench, setting))[:MAX_SIMPLER]

    def _error(self, setting: Setting) -> float:
        """Return the standard error of a score from the spread of the blocks of each setting.

        Before a second block it is that of all settings: most have no effect.
        """
        deviations = []
        for other, blocks in self.measured.items():
            score = self.score(other)
            deviations += [self._objective(gains) - score for gains in blocks] if len(blocks) > 1 else []
        deviations = deviations or [self.score(other) for other in self.measured]
        _, noise = robust(deviations)
        return noise / math.sqrt(len(self.measured[setting]))

    def score(self, setting: Setting) -> float:
        """Return the gain of the objective: the median over the blocks."""
        return statistics.median(self._objective(gains) for gains in self.measured[setting])

    def others(self, accepted: Setting = DEFAULT) -> list[str]:
        """Say which settings looked better than the accepted one: but for a harm, and in the cases that do not count."""
        return [words for words in (self._best_harmful(accepted), self._best_elsewhere(accepted)) if words]

    def _best_harmful(self, accepted: Setting) -> str:
        limit = self.score(accepted) + thresholds.EQUAL_GAIN if accepted in self.measured else thresholds.MIN_GAIN
        harmful = [setting for setting in self.measured if setting not in self._trials.dropped and self._harms(setting)]
        ranking = self._simplest_first(sorted(harmful, key=self.score, reverse=True))
        if not ranking or self.score(ranking[0]) < limit:
            return ""
        best = ranking[0]
        lost = min(self._harmed(best), key=lambda case: self._median(best, case))
        gain, loss = (100 * math.expm1(change) for change in (self.score(best), self._median(best, lost)))
        hint = confirm.settled_by(self._harmed(best))
        return f"in the screening {space.in_words(dict(best))}: {gain:+.1f} %, but {lost.id} {loss:+.1f} %{hint}"

    def _best_elsewhere(self, accepted: Setting) -> str:
        watched = [case for case in self._trials.cases if case.where and not case.judged and not case.coarse]

        def gain(setting: Setting) -> float:
            return statistics.fmean(self._median(setting, case) for case in watched)

        best = max(self.measured, key=gain, default=None) if watched else None
        if best is None or best == accepted or gain(best) < thresholds.MIN_GAIN:
            return ""
        cases = self._trials.cases
        worse = [case for case in cases if self._surely(case.id, best) < -case.most_loss]
        words = confirm.in_tables({case: self._median(best, case) for case in cases}, worse)
        return f"in the screening {space.in_words(dict(best))}: {words}"

    def _median(self, setting: Setting, case: Case) -> float:
        return statistics.median(self._of_case(setting, case.id))

    def _of_case(self, setting: Setting, case: str) -> list[float]:
        return [gains[case] for gains in self.measured[setting] if case in gains]

    def _objective(self, gains: Mapping[str, float]) -> float:
        return objective(self._trials.cases, gains)

    def _compared(self, arms: Sequence[Setting]) -> list[Setting]:
        """Return the arms after a few rounds of all of them, the best first."""
        for _ in range(self._trials.bench.rounds):
            if not self._raced(arms):
                break
        return self._ranked(arms)

    def _halved(self, arms: Sequence[Setting]) -> list[Setting]:
        """Return the remaining arms after a race, the best first: after each round at most half, and those that may win."""
        rounds = 0
        while arms and self._raced(arms):
            rounds += 1
            arms = self._ranked(arms)
            may_win = self._may_win(arms)
            if len(arms) > MAX_SURVIVORS:
                arms = arms[: (len(arms) + 1) // 2]
            if len(may_win) < 2 or (len(arms) <= MAX_SURVIVORS and rounds >= self._trials.bench.rounds):
                break
            arms = [each for each in arms if each in may_win]
        return self._ranked(arms)

    def _may_win(self, ranking: Sequence[Setting]) -> list[Setting]:
        """Return the arms that may gain enough and are not surely behind the best; without a noise to go by, all of them."""
        if sum(map(len, self.measured.values())) < thresholds.MIN_GAINS_FOR_NOISE or not ranking:
            return list(ranking)
        best = self.score(ranking[0]) - thresholds.SURE_ERRORS * self._error(ranking[0])
        return [
            setting
            for setting in ranking
            if self._may_gain(setting) and self.score(setting) + thresholds.SURE_ERRORS * self._error(setting) >= best
        ]

    def _raced(self, arms: Sequence[Setting]) -> bool:
        """Measure every arm once, as far as time remains for a confirmation. Return False if that is insufficient."""
        self.is_complete = self._round(arms, self._reserve) and self.is_complete
        return self.is_complete

    def _round(self, arms: Sequence[Setting], reserve: int, cases: Sequence[Case] = ()) -> bool:
        """Measure every arm once. Return False if the time is insufficient: finished trials still count."""
        order = list(arms)
        self._generator.shuffle(order)
        most = self._trials.bench.arms
        for start in range(0, len(order), most):
            block: list[Setting] = [DEFAULT, *order[start : start + most]]
            self._generator.shuffle(block)
            try:
                self._block(block, reserve, cases)
            except BudgetError:
                return False
        return True

    def _block(self, block: Sequence[Setting], reserve: int, cases: Sequence[Case]) -> None:
        """Measure a block: all cases the first time, and later those that decide."""
        if self._trials.left < (len(block) + reserve) * self._trials.seconds:
            raise BudgetError
        block = [setting for setting in block if setting not in self._trials.dropped]
        cases = cases or (self._trials.judged if self.measured.keys() >= {*block} - {DEFAULT} else ())
        self._trials.begin(block)
        trials = {setting: self._trials.run(PHASE, setting, cases) for setting in block}
        control = trials.pop(DEFAULT)
        for setting, trial in trials.items():
            if trial is not None and control is not None:
                self.measured.setdefault(setting, []).append(self._trials.gains(trial, control))

    def _ranked(self, arms: Sequence[Setting]) -> list[Setting]:
        """Return the arms that were not dropped and do not certainly harm a case, the best first."""
        measured = [setting for setting in arms if setting in self.measured and setting not in self._trials.dropped]
        return sorted(
            (setting for setting in measured if not self._harms(setting)), key=lambda setting: -self.score(setting)
        )

    def _harms(self, setting: Setting) -> bool:
        """Return whether a setting certainly makes a case worse than allowed: confirmation would refuse it."""
        if sum(map(len, self.measured.values())) < thresholds.MIN_GAINS_FOR_NOISE:
            return False  # the confirmation says it
        return bool(self._harmed(setting))

    def _harmed(self, setting: Setting) -> list[Case]:
        constrained = [case for case in self._trials.cases if case.judged]
        return [case for case in constrained if self._surely(case.id, setting) < -case.most_loss]

    def _surely(self, case: str, setting: Setting) -> float:
        """Return the best plausible gain of a case: most settings have no effect, so their spread is the noise."""
        _, noise = robust([value for other in self.measured for value in self._of_case(other, case)])
        own_gains = self._of_case(setting, case)
        return statistics.median(own_gains) + thresholds.SURE_ERRORS * noise / math.sqrt(len(own_gains))
