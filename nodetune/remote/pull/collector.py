"""The script that a node runs, made of deposit.py and the same probe that an audit sends over SSH, and its folder."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nodetune import __version__
from nodetune.foundation import UserError, templates
from nodetune.remote import payload

DEPOSIT = Path(__file__).parent / "deposit.py"
SERVICE, TIMER = "nodetune-pull.service", "nodetune-pull.timer"
LOCK = "/run/nodetune-pull.lock"

PROBE_SECONDS = 60.0
"""Longer than over SSH, where a user waits: the collector yields to the jobs of the node."""

MAX_SECONDS = 300
MIN_INTERVAL, MAX_INTERVAL = 60, 7 * 86400
_PATH = re.compile(r"(/[A-Za-z0-9_.+@:,=~-]+)+/?")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.IGNORECASE)


class PullError(UserError):
    """An invalid setting: one line."""


@dataclass(frozen=True)
class Settings:
    """The folder of the facts, the interval in seconds, the writing user and the Python. Raises PullError."""

    folder: str
    every: int
    user: str = ""
    python: str = "/usr/bin/python3"
    lock: str = LOCK

    def __post_init__(self) -> None:
        for name, path in (("--dir", self.folder), ("--python", self.python)):
            if not _PATH.fullmatch(path) or ".." in path.split("/"):
                raise PullError(f"{name} {path!r}: give an absolute path without blanks, such as /shared/facts")
        if self.user and not _USER.fullmatch(self.user):
            raise PullError(f"--user {self.user!r} is not a valid user name")
        if not MIN_INTERVAL <= self.every <= MAX_INTERVAL:
            raise PullError("--every must be from 1m to 7d")


@dataclass(frozen=True)
class Place:
    """Where the files are on a node, and what removes them."""

    program: str = "/opt/nodetune/pull/collect"
    units: str = "/etc/systemd/system"
    removal: str = "run uninstall, in the same folder as install"

    @property
    def files(self) -> dict[str, str]:
        """The files on a node, with their modes."""
        return {self.program: "0755", f"{self.units}/{SERVICE}": "0644", f"{self.units}/{TIMER}": "0644"}


def script(names: Iterable[str], settings: Settings, removal: str = Place.removal) -> bytes:
    """Return the collector of these facts, which `python3 -I -S` runs."""
    about = {"every": settings.every, "nodetune": __version__}
    given = (settings.folder, settings.user, about, settings.lock)
    head = (
        f"#!{settings.python} -IS\n# Written by nodetune {__version__}: collects this node's facts into"
        f" {settings.folder}. To remove it: {removal}.\n"
    )
    entry = (
        "from nodetune.onhost import layout\nfrom nodetune.probe import main\n"
        f"deposit(lambda: main.document(ASKED, SECONDS), layout.text, *{given!r})\n"
    )
    probe = payload.probing(payload.PROBE, json.dumps(payload.families(names)), PROBE_SECONDS, entry)
    return head.encode() + DEPOSIT.read_bytes() + b"\n\n" + probe


def files(names: Iterable[str], settings: Settings, place: Place) -> dict[str, bytes]:
    """Return the files on a node: path → content."""
    known = {"settings": settings, "place": place, "most": MAX_SECONDS, "half": settings.every // 2}
    return {
        place.program: script(names, settings, place.removal),
        f"{place.units}/{SERVICE}": templates.render("pull-service.j2", **known).encode(),
        f"{place.units}/{TIMER}": templates.render("pull-timer.j2", **known).encode(),
    }


def folder(names: Iterable[str], settings: Settings) -> dict[str, tuple[bytes, str]]:
    """Return the files that `nodetune pull bundle` writes: path below its folder → content, mode."""
    place = Place()
    known = {"settings": settings, "service": SERVICE, "timer": TIMER, "units": place.units, "files": place.files}
    texts = files(names, settings, place)
    tools = {
        name: (templates.render(f"pull-{name}.sh.j2", **known).encode(), "0755") for name in ("install", "uninstall")
    }
    return {**{f"files{path}": (texts[path], mode) for path, mode in place.files.items()}, **tools}
