"""One tuning from the first trial to the decision: screening, confirmation on fresh runs, and the result."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodetune.statistics.thresholds import MAX_PAIRS
from nodetune.tune import confirm, space
from nodetune.tune.confirm import Confirmation
from nodetune.tune.model import DEFAULT, Bench, BenchError, Setting, Trial
from nodetune.tune.search import Screening
from nodetune.tune.trials import BudgetError, DisturbedError, Keep, OnTrial, Trials

FINALISTS = 2
"""The second is confirmed if the first is refused."""

ACCEPTED, NOTHING, STOPPED, DISTURBED, NO_TIME = (
    "accepted",
    "nothing better",
    "interrupted",
    "disturbed",
    "too little time",
)
"""accepted and nothing better are results; the others are reasons for no result."""


@dataclass(frozen=True)
class TuningOutcome:
    """The result of a tuning. `setting` is the recommended one: the default unless the state is `accepted`."""

    state: str
    reason: str
    setting: Setting = DEFAULT
    confirmations: tuple[Confirmation, ...] = ()
    dropped: Mapping[Setting, str] = field(default_factory=dict)
    trials: tuple[tuple[str, Trial], ...] = ()
    seconds: float = 0.0
    resolved: Mapping[str, float] = field(default_factory=dict)
    """Of each case, the smallest difference that the screening sees, as a fraction: half of a 99 % interval."""

    @property
    def accepted(self) -> bool:
        return self.state == ACCEPTED


def tune(
    bench: Bench,
    budget: float,
    *,
    seed: int = 1,
    known: Sequence[Trial] = (),
    keep: Keep | None = None,
    report: OnTrial | None = None,
) -> TuningOutcome:
    """Tune for at most `budget` seconds. Ctrl-C ends it and keeps the trials. Raise BenchError."""
    if not any(case.objective for case in bench.cases):
        raise BenchError("the objective could not be measured: nodetune verify says why")
    trials = Trials(bench, budget, known, keep, report)
    confirmations: list[Confirmation] = []
    generator = random.Random(seed)  # noqa: S311  (an order, and no secret)
    screening = Screening(trials, 2 * MAX_PAIRS, generator)
    try:
        state, reason = _decide(trials, screening, generator, confirmations)
    except KeyboardInterrupt:
        state, reason = STOPPED, "interrupted: --resume continues it"
    except DisturbedError as why:
        state, reason = DISTURBED, f"every trial was disturbed: {why}"
    except BudgetError:
        state, reason = (
            NO_TIME,
            "the budget ended before every setting was tried and the best confirmed: --resume with a larger --budget",
        )
    best = confirmations[-1].setting if state == ACCEPTED else DEFAULT
    dropped, trials_made = dict(trials.dropped), tuple(trials.made)
    return TuningOutcome(
        state, reason, best, tuple(confirmations), dropped, trials_made, trials.spent, screening.resolved()
    )


def _check_measured(trials: Trials) -> None:
    """Raise BenchError if no setting could be measured."""
    tried = space.first(trials.bench)
    if trials.unmeasured.issuperset(tried):
        raise BenchError(f"no setting could be measured; {space.in_words(dict(tried[0]))}: {trials.dropped[tried[0]]}")


def _decide(
    trials: Trials, screening: Screening, generator: random.Random, confirmations: list[Confirmation]
) -> tuple[str, str]:
    if not space.first(trials.bench):
        names = ", ".join(parameter.name for parameter in trials.bench.parameters)
        return NOTHING, "no settings to try on these hosts" + (f": {names} needs another parameter" if names else "")
    finalists = screening.finalists()
    _check_measured(trials)
    finalists = trials.bench.finalists(finalists, screening.gains(), [trial for _, trial in trials.made])
    for setting in finalists[:FINALISTS]:
        if confirmations and trials.left < 2 * MAX_PAIRS * trials.seconds:
            raise BudgetError
        confirmation = confirm.confirm(trials, setting, generator)
        if confirmation is not None:
            confirmations.append(confirmation)
            if not confirmation.refused:
                better = f"{space.in_words(dict(setting))} is {100 * confirmation.ratio:.1f} % better"
                return ACCEPTED, _joined(
                    better, confirmation.in_tables, confirmation.unresolved, *screening.others(setting)
                )
    confirmed = [confirmation.setting for confirmation in confirmations]
    if not screening.is_complete and not (
        screening.tried and set(confirmed).issuperset(screening.undecided(screening.measured))
    ):
        raise BudgetError
    others = screening.others()
    if confirmations:
        refusals = [
            f"{space.in_words(dict(confirmation.setting))}: {_joined(confirmation.refused, confirmation.in_tables)}"
            for confirmation in confirmations
        ]
        return NOTHING, f"nothing beats the default ({_joined(*refusals, *others)})"
    left_out = [setting for setting in finalists[:FINALISTS] if setting in trials.dropped]
    if left_out:
        reasons = "; ".join(f"{space.in_words(dict(setting))}: {trials.dropped[setting]}" for setting in left_out)
        return NOTHING, f"nothing beats the default (settings that looked better were left out: {reasons})"
    return NOTHING, _joined("nothing beats the default: no setting looked better in the screening", *others)


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
