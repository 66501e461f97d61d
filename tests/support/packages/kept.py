"""Folders that take long to make, kept next to the machines' images for as long as what they are made of stays the same."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.machines import place

SECONDS = 24 * 3600
"""After which a folder that something else gave is removed; others may still use it until then."""


def folder(kind: str, key: str, fill: Callable[[Path], None]) -> Path:
    """The folder that `fill(new)` made; others wait while one process makes it. Leave it as it is: it is shared."""
    made = place.folder() / f"{kind}-{key}"
    with place.locked(place.folder() / f"making-{kind}"):
        if not made.exists():
            _remove_old(kind)
            with tempfile.TemporaryDirectory(prefix=f"unfinished-{kind}-", dir=place.folder()) as unfinished:
                new = Path(unfinished) / "new"
                fill(new)
                new.rename(made)
    return made


def _remove_old(kind: str) -> None:
    """Also what a killed process left: only one at a time makes folders of a kind."""
    for old in place.folder().glob(f"{kind}-*"):
        if old.stat().st_mtime < time.time() - SECONDS:
            shutil.rmtree(old)
    for unfinished in place.folder().glob(f"unfinished-{kind}-*"):
        shutil.rmtree(unfinished)
