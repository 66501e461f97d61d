"""pytest's options → an audit → what each item is to tell. Imported only in runs with --nodetune."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from nodetune.model import SEVERITIES, Check, Finding, HostResult
from nodetune.outcome import at_least

CHECKS = Path(__file__).parents[1] / "checks"
REACHED = "reached"


@dataclass(frozen=True)
class Case:
    """One item: its outcome (passed, failed, error, skipped, xfailed) and what is told with it.

    An `error` is what the exit code 3 of an audit stands for: nothing is known that a verdict could rest on.
    """

    host: str
    name: str
    outcome: str
    text: str
    marks: tuple[str, ...]


def markers() -> list[tuple[str, str]]:
    """Every marker that items may have, and what it says."""
    areas = sorted(each.name for each in CHECKS.iterdir() if each.is_dir() and each.name[0] not in "._")
    return [
        ("nodetune", "a check of nodetune on a host"),
        *((severity, f"nodetune: findings of severity {severity}") for severity in reversed(SEVERITIES)),
        *((area, f"nodetune: checks of the area {area}") for area in (*areas, "fleet", "site")),
    ]


def packed(cases: Iterable[Case]) -> list[tuple[Any, ...]]:
    """Plain values, for a worker of xdist."""
    return [astuple(case) for case in cases]


def unpacked(handed: Iterable[tuple[Any, ...]]) -> list[Case]:
    return [Case(*each) for each in handed]


def audited(config: pytest.Config) -> list[Case]:
    """Audit, as `nodetune audit` does with the same options. Raises pytest.UsageError for a mistake in these."""
    import click

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries below; -W error is meant for the user's own tests
        try:
            return _audit(arguments(config))
        except click.ClickException as problem:
            _refuse(problem.format_message())
        except (ValueError, OSError) as problem:
            from nodetune import cli

            if not cli.is_for_users(problem):
                raise
            _refuse(cli.text(problem))


def _refuse(message: str) -> NoReturn:
    raise pytest.UsageError(f"nodetune: {' '.join(message.split())}")
