"""The checks: one file each, in a folder per area; found by name, registered nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib import import_module

from nodetune.model import Check


@cache
def catalogue() -> dict[str, str]:
    """id → module name of every check, sorted by area and id. Imports none of them."""
    from pathlib import Path  # the guard knows its checks by name and has no time for it

    files = sorted(Path(__file__).parent.glob("*/[a-z]*.py"))
    return {file.stem.replace("_", "-"): f"{__name__}.{file.parent.name}.{file.stem}" for file in files}


@cache
def load(check_id: str) -> Check:
    """The check with that id. Raises KeyError if there is none."""
    module = import_module(catalogue()[check_id])
    area = module.__name__.split(".")[-2]
    check: Check = module.CHECK
    return replace(check, id=check_id, area=area, doc=module.__doc__ or "")


def load_all(ids: Iterable[str] | None = None) -> list[Check]:
    """All checks, or those with the given ids."""
    return [load(each) for each in (catalogue() if ids is None else ids)]
