"""The options that a settings file may set: key → option, which no file has to give. Imported where there is such a file."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import click

from nodetune.cli import change_options
from nodetune.cli.host_options import hosts_or_pods
from nodetune.cli.options import history, judging, notify
from nodetune.cli.requests import stack
from nodetune.cli.settings import VARIABLE, Setting
from nodetune.foundation import text
from nodetune.remediation.request import ApplyRequest

NEAR = 0.8


@stack(
    hosts_or_pods,
    judging,
    history,
    notify,
    change_options.runs_folder,
    change_options.waits(ApplyRequest),
    change_options.drain,
    change_options.batches(ApplyRequest),
)
def _every() -> None:
    """Has every option that is a setting."""


KNOWN = {each.key: each for each in getattr(_every, "__click_params__", ()) if isinstance(each, Setting)}


def name_near(others: Iterable[str]) -> None:
    """Name those of these variables of the environment that nearly are the variable of a setting."""
    variables = {each.envvar for each in KNOWN.values()} | {VARIABLE}
    names = {name.removeprefix("NODETUNE_"): name for name in variables}
    for other in sorted(name for name in others if name not in variables):
        near = get_close_matches(other.removeprefix("NODETUNE_"), names, 1, NEAR)
        if near:
            click.echo(f"nodetune: {text.plain(other, 60)} is not a setting: did you mean {names[near[0]]}?", err=True)
