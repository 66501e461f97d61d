"""The share of a collective's rate that remains when more GPUs take part: two results, of N GPUs and of 2 N. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nodetune.verify import figures
from nodetune.verify.catalogue import of_scope
from nodetune.verify.model import Figure

RATES = ("GB/s", "TFLOP/s")
"""busbw and the rate of each GPU stay the same however many GPUs there are, if nothing holds them back."""
NUMBERS = ("gpus", "nodes")


@dataclass(frozen=True)
class Scaling:
    """A figure of fewer GPUs and the same of more."""

    before: Figure
    after: Figure

    @property
    def efficiency(self) -> float:
        """The rate with more GPUs as a fraction of that with fewer."""
        return self.after.value / self.before.value


def scaling(before: Iterable[Figure], after: Iterable[Figure]) -> list[Scaling]:
    """Return the figures of collectives that differ in nothing but the number of GPUs, in the order of the first."""
    known = {kind: each for each in after if (kind := _kind(each))}
    pairs = [(each, known.get(_kind(each))) for each in before if _kind(each)]
    return [
        Scaling(one, other)
        for one, other in pairs
        if other and one.about["gpus"] != other.about["gpus"] and one.value > 0
    ]


def _kind(figure: Figure) -> tuple[Any, ...]:
    """Return the kind of a figure but for the number of GPUs; empty for one that does not scale."""
    gpus = figure.about.get("gpus")
    if figure.measurement not in of_scope("collective") or figure.unit not in RATES or type(gpus) is not int:
        return ()
    conditions = {key: value for key, value in figures.conditions(figure).items() if key not in NUMBERS}
    return figure.measurement, figure.metric, repr(sorted(conditions.items()))
