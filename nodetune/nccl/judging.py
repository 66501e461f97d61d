"""One question asked of every setting that takes effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nodetune.nccl import syntax
from nodetune.nccl.settings import EVALUATED, Problems, Setting, meant, subject
from nodetune.nccl.table import About, variables

Judge = Callable[[Setting, About], str]
"""A setting and what is known of its name → what is wrong with it; empty where nothing is."""


def problems(settings: Sequence[Setting], judge: Judge) -> Problems:
    """What `judge` says of each setting that takes effect and is in the table."""
    known, found = variables(), {}
    for setting in settings:
        about = known.get(setting["name"])
        if about is not None and takes_effect(setting):
            text = judge(setting, about)
            if text:
                found[subject(setting)] = text
    return found


def takes_effect(setting: Setting) -> bool:
    """Whether a program gets this very value: not lost to syntax, not empty, not computed by a shell."""
    value = setting["value"]
    if not value or setting["name"] != meant(setting) or syntax.fault(setting):
        return False
    return setting["scope"] not in EVALUATED or not ("$" in value or "`" in value)
