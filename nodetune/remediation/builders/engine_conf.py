"""Default limits of containers in podman and CRI-O: a file of nodetune's own, which they read after the files of others.

Of several files with `default_ulimits` the last one holds alone: so ours repeats the limits that are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.foundation.json_document import merge
from nodetune.remediation.builders._own import named, own_file, plain_line
from nodetune.remediation.host_view import HostView, UnfixableError

FILES = {
    "podman": ("/etc/containers/containers.conf.d/zz-nodetune.conf", "containers"),
    "crio": ("/etc/crio/crio.conf.d/zz-nodetune.conf", "crio.runtime"),
}
"""Engine → its file, and the table in it."""

ENGINES = {"podman": "podman", "CRI-O": "crio"}
"""Engines as a check names them."""

NEEDS = ("containers.podman", "containers.crio", "services.crio")
ULIMIT = r"\w{1,32}=[\d:-]{1,64}"


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    settings: dict[str, dict[str, Any]] = {}
    checks: dict[str, list[str]] = {}
    for fix in fixes:
        for engine, keys in _wanted(fix, host).items():
            settings[engine] = merge(settings.get(engine, {}), keys)
            checks.setdefault(engine, []).extend(host.checks(fix))
    return [change for engine, keys in settings.items() for change in _written(engine, keys, checks[engine], host)]


def _wanted(fix: Fix, host: HostView) -> dict[str, dict[str, Any]]:
    """Return what each engine is to have. Raise UnfixableError where no file of nodetune's can give it."""
    engine, _, item = fix.target.partition(" ")
    if item == "memlock":
        return {engine: {"default_ulimits": _ulimits(engine, named(str(fix.value), "limit", r"-?\d+(:-?\d+)?"), host)}}
    if fix.target != "pids_limit" or type(fix.value) is not int:
        raise UnfixableError(f"{fix.target} = {fix.value!r} is not a limit of podman or CRI-O that nodetune sets")
    if others := [each for each in fix.subjects if each not in ENGINES]:
        reason = f"{', '.join(others)}: set podPidsLimit in its configuration, and restart it"
        if len(others) == len(fix.subjects):
            raise UnfixableError(reason)
        host.note(reason)
    return {ENGINES[each]: {"pids_limit": fix.value} for each in fix.subjects if each in ENGINES}


def _ulimits(engine: str, memlock: str, host: HostView) -> list[str]:
    known = host[f"containers.{engine}"].get("ulimits")
    if known is None:
        raise UnfixableError(
            f"the other default limits of {engine} are unknown: the facts are of an older nodetune, so audit again"
        )
    kept = [named(str(each), "limit", ULIMIT) for each in known if not str(each).startswith("memlock=")]
    return [*kept, f"memlock={memlock}"]


def _written(engine: str, keys: dict[str, Any], checks: list[str], host: HostView) -> list[dict[str, Any]]:
    path, table = FILES[engine]
    made = own_file(host, path, "engine.conf.j2", {table: keys}, _allowed) | {"checks": checks}
    if engine != "crio" or (host.readable("services.crio") or {}).get("active") != "active":
        return [made]
    return [made, {"change": "run", "run": "restart crio.service", "of": path}]


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    if len(keys) != 2 or keys[0] not in [table for _, table in FILES.values()]:
        return False
    if keys[1] == "default_ulimits":
        return isinstance(value, list) and all(plain_line(each, ULIMIT) for each in value)
    return keys[1] == "pids_limit" and type(value) is int
