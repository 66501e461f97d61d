"""Select settings to try: all combinations if there are few, otherwise one parameter at a time. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product
from math import prod
from typing import Any

from nodetune.foundation import text
from nodetune.tune.model import DEFAULT, Bench, Choice, Parameter, Setting

MAX_SETTINGS = 40
"""Up to this many combinations, all are tried. Beyond, each value is tried alone, then the best are combined."""

MAX_LENGTH = 100
"""Characters of a value that are shown."""

BEST_TO_COMBINE = 3
"""Number of parameters whose best values are tried in all combinations: at most eleven trials."""


def enumerated(parameters: Iterable[Parameter]) -> bool:
    """Return whether the whole space is tried."""
    return prod(len(parameter.choices) + 1 for parameter in parameters) - 1 <= MAX_SETTINGS


def first(bench: Bench) -> list[Setting]:
    """Return the settings of the first screening without the default, in the order of the parameters."""
    made = _all(bench.parameters) if enumerated(bench.parameters) else _single(bench)
    return [setting for setting in dict.fromkeys(made) if setting != DEFAULT and bench.allowed(setting)]


def combined(bench: Bench, ranking: Iterable[Setting]) -> list[Setting]:
    """Return combinations of the best settings of different parameters; `ranking` has those of the first screening, the best first."""
    best: list[Setting] = []
    for setting in ranking:
        names = {name for name, _ in setting}
        if len(best) < BEST_TO_COMBINE and names.isdisjoint(name for chosen in best for name, _ in chosen):
            best.append(setting)
    groups = [group for count in range(2, len(best) + 1) for group in combinations(best, count)]
    made = [tuple(sorted(pair for setting in group for pair in setting)) for group in groups]
    return [setting for setting in made if bench.allowed(setting)]


def _all(parameters: Iterable[Parameter]) -> Iterator[Setting]:
    choices = [[None, *((parameter.name, value) for value in parameter.choices)] for parameter in parameters]
    for chosen in product(*choices):
        yield tuple(sorted(pair for pair in chosen if pair is not None))


def _single(bench: Bench) -> Iterator[Setting]:
    """Yield each value alone, or with the first other value that it needs."""
    for parameter in bench.parameters:
        for value in parameter.choices:
            alone = ((parameter.name, value),)
            others = (_with(alone, other) for other in bench.parameters if other.name != parameter.name)
            pairs = (pair for several in others for pair in several if bench.allowed(pair))
            yield alone if bench.allowed(alone) else next(pairs, alone)


def _with(setting: Setting, other: Parameter) -> list[Setting]:
    return [tuple(sorted((*setting, (other.name, value)))) for value in other.choices]


def simplicity(bench: Bench, setting: Setting) -> tuple[int, list[int]]:
    """Return a sort key: few changes first, then early choices, which cost less."""
    return len(setting), [_places(bench)[pair] for pair in setting]


def is_simpler(bench: Bench, setting: Setting, than: Setting) -> bool:
    """Return whether a setting has a proper subset of the other's changes."""
    places, other = _places(bench), dict(than)
    return setting != than and all(
        name in other and places[name, value] <= places[name, other[name]] for name, value in setting
    )


def _places(bench: Bench) -> dict[tuple[str, Choice], int]:
    """Return the index of each choice in its parameter's choices."""
    return {
        (parameter.name, choice): place
        for parameter in bench.parameters
        for place, choice in enumerate(parameter.choices)
    }


def in_words(setting: Mapping[str, Any]) -> str:
    """Return NAME=VALUE for each value, or `the default`."""
    return (
        " ".join(f"{text.plain(name)}={text.plain(value, MAX_LENGTH)}" for name, value in setting.items())
        or "the default"
    )
