"""The checks: one file each, in a folder per area; found by name, registered nowhere. shared/ has no checks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

from nodetune.api import Check


@cache
def catalogue() -> dict[str, str]:
    """Return id → module name of every check, sorted by area and id. Imports none of them."""
    from pathlib import Path  # imported here: the guard loads its checks by name and must start fast

    files = sorted(file for file in Path(__file__).parent.glob("*/[a-z]*.py") if file.parent.name != "shared")
    return {file.stem.replace("_", "-"): f"{__name__}.{file.parent.name}.{file.stem}" for file in files}


@cache
def load(check_id: str) -> Check:
    """Load the check with that id. Raise KeyError if there is none."""
    module = import_module(catalogue()[check_id])
    area = module.__name__.split(".")[-2]
    check: Check = module.CHECK
    return replace(check, id=check_id, area=area, doc=module.__doc__ or "")


def load_all() -> list[Check]:
    return [load(each) for each in catalogue()]
