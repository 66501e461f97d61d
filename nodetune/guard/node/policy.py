"""The policy of a node, /etc/nodetune/guard.json: written at install time (nodetune.guard.deploy.policy), checked here at each run."""

from __future__ import annotations

import json
import os
import re
import time
from math import inf

from nodetune.guard.node import cache, records
from nodetune.guard.node.invocation import InconclusiveError

TYPE_CHECKING = False  # the real one is in typing, which costs ten milliseconds before the readers are started
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "nodetune.guard-policy/1"
MODES, ACTS, ABOUT = ("observe", "enforce"), ("slurm", "drain"), ("gpu", "node")
KILL_LEFTOVERS = "kill_strays"
"""A setting that keeps its name: guards of every version read it."""

LIMITS = {
    "total": (5, 0.5, 60),
    "step": (3, 0.1, 60),  # and at most the total
    "stuck": (20, 1, 3600),
    "reuse_seconds": (60, 0, 3600),
    "cap_nodes_per_hour": (5, 1, 1_000_000),
}
"""Numbers of the policy: default, least, most. The first three are the guard's budgets in seconds."""

LARGEST = 1 << 20
NAMES = {"id": re.compile(r"[a-z0-9][a-z0-9-]*"), "area": re.compile(r"[a-z0-9_]+")}


class Policy:
    """The content of the policy, checked. Budgets in seconds; `checks` and `waivers` as in the schema."""

    def __init__(self, data: dict[str, Any], stamp: str) -> None:
        self.stamp = stamp
        self.mode = _one_of(data, "mode", MODES)
        self.act = _one_of(data, "act", ACTS)
        seconds = _entry(data, "seconds", dict)
        self.total = _number(seconds, "total")
        self.step = _number(seconds, "step", self.total)
        self.stuck = _number(seconds, "stuck")
        self.reuse = _number(data, "reuse_seconds")
        self.cap = int(_number(data, "cap_nodes_per_hour"))
        self.gpus: int = _entry(data, "gpus", int) if "gpus" in data else 0
        self.shared = _path(data, "shared") if data.get("shared") is not None else ""
        self.off = [_path({"off": each}, "off") for each in _entry(data, "off", list)]
        self.scontrol = _path(data, "scontrol")
        self.checks = [_check(each) for each in _entry(data, "checks", list)]
        self.waivers = [_waiver(each) for each in _entry(data, "waivers", list)]
        self.kill_leftovers: bool = _entry(data, KILL_LEFTOVERS, bool)
        self.snapshot = [str(each) for each in _entry(data, "snapshot", list)]

    def waived(self) -> dict[str, str]:
        """Return the checks whose findings do not count today, with reason, owner and date."""
        today = time.strftime("%Y-%m-%d", time.gmtime())
        return {
            each["id"]: f"{each['reason']} ({each['owner']}, until {each['until']})"
            for each in self.waivers
            if today <= each["until"]
        }


def load(path: str) -> Policy:
    """Read the policy. Raise InconclusiveError, which names the file and what is wrong with it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            seen, text = os.fstat(handle), os.read(handle, LARGEST)
        finally:
            os.close(handle)
    except OSError as problem:
        raise InconclusiveError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    if not records.trusted(seen):
        advice = "chown root: it, chmod go-w it"
        raise InconclusiveError(f"{path}: must belong to root and be writable by no one else: {advice}")
    try:
        return Policy(parsed(text), cache.stamp(seen))
    except ValueError as problem:
        raise InconclusiveError(f"{path}: {problem}: install the guard again") from None


def parsed(text: bytes | str) -> dict[str, Any]:
    """Parse a policy. Raise ValueError if this version cannot read it."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"not JSON ({problem})") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"not a policy for this version ({SCHEMA})")
    return data


def _entry(data: Any, key: str, kind: type) -> Any:
    if not isinstance(data, dict) or not isinstance(data.get(key), kind):
        raise ValueError(f"{key} is missing or not a {kind.__name__}")  # noqa: TRY004  (of the file, as all others)
    return data[key]


def _one_of(data: dict[str, Any], key: str, words: tuple[str, ...]) -> str:
    found: str = _entry(data, key, str)
    if found not in words:
        raise ValueError(f"{key} is {found!r} but must be one of {', '.join(words)}")
    return found


def _number(data: dict[str, Any], key: str, most: float = inf) -> float:
    """Return a number of the policy, of at most `most` where that is less than what LIMITS says."""
    found, (_, low, limit) = data.get(key), LIMITS[key]
    high = min(limit, most)
    if not isinstance(found, (int, float)) or isinstance(found, bool) or not low <= found <= high:
        raise ValueError(f"{key} is {found!r} but must be a number from {low:g} to {high:g}")
    return found


def _path(data: dict[str, Any], key: str) -> str:
    found: str = _entry(data, key, str)
    if not found.startswith("/"):
        raise ValueError(f"{key} is {found!r} but must be an absolute path")
    return found


def _check(data: Any) -> dict[str, Any]:
    for key, pattern in NAMES.items():
        if not pattern.fullmatch(_entry(data, key, str)):
            raise ValueError(f"{data[key]!r} is not a valid {key} of a check")
    _one_of(data, "about", ABOUT)
    if not all(isinstance(name, str) for name in _entry(data, "facts", list)):
        raise ValueError(f"a needed fact of {data['id']} is not a name")
    for key in ("severity", "title", *(("fact",) if data["area"] == "site" else ())):
        _entry(data, key, str)
    if data.get("accept") is None:
        raise ValueError(f"{data['id']} has no accepted value")
    return dict(data)


def _waiver(data: Any) -> dict[str, str]:
    return {key: _entry(data, key, str) for key in ("id", "reason", "owner", "until")}
