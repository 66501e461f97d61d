"""Send what changed to the receiver of --notify, whatever concluded it."""

from __future__ import annotations

from nodetune.api.conclusion import Examined
from nodetune.cli.terminal import Terminal


def tell(url: str, found: Examined, selected: str, fail_on: str = "medium") -> None:
    """Notify the receiver, if there is one. That it took nothing is a warning. `selected`: see report/notify/run.py."""
    if not url:
        return
    from nodetune.report.notify import run  # few runs notify anybody

    if problem := run.notify(url, found, selected, fail_on):
        Terminal().warn(problem)
