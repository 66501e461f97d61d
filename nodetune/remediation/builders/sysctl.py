"""Kernel parameters: written to /proc/sys now, kept by sysctl.d."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from nodetune.api.model import Absent, Fix
from nodetune.onhost.sysctl import path_of
from nodetune.remediation.builders import _tuned, modprobe
from nodetune.remediation.builders._own import Allowed, among, named, own_file, text_of
from nodetune.remediation.host_view import HostView, UnfixableError

PATH = "/etc/sysctl.d/zz-nodetune.conf"
"""systemd-sysctl and procps apply the files in the order of their names, whatever the folder: the last line wins."""

READ_LAST = "/etc/sysctl.conf"
NEEDS = (*_tuned.NEEDS, "persisted.sysctl_conf")
SLOTS = "slot_table_entries"
CLEAR = (("bytes", "ratio"), ("ratio", "bytes"))


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made = []
    settings: dict[str, str | None] = {}
    against = []
    for fix in fixes:
        name, value = _known(fix.target, host), text_of(fix.value)
        settings |= {twin(name): None, name: value} if twin(name) else {name: value}
        made.append({"change": "value", "path": path_of(name), "value": value, "checks": host.checks(fix)})
        _say_who_else_sets(name, value, host)
        against.append((_against_tuned(name, value, host), host.checks(fix)))
    late = sorted({check for fix in fixes if fix.target.endswith(SLOTS) for check in host.checks(fix)})
    modules = (change | {"checks": late} for change in _of_late_modules(settings, host))
    return [
        *made,
        own_file(host, PATH, "sysctl.conf.j2", settings, _allowed(host)),
        *_tuned.changes(host, against),
        *modules,
    ]


def _known(target: str, host: HostView) -> str:
    """Return the name of a parameter. Raise UnfixableError for one that the kernel of this host does not have."""
    name = named(target, "kernel parameter", r"\w[\w./-]*")
    if isinstance(host.fact(f"sysctl.{name}"), Absent):
        raise UnfixableError(
            f"{name} does not exist on this host (no {path_of(name)}): nothing is written for it. Correct the name, "
            "or load its kernel module, then plan again"
        )
    return name


def _of_late_modules(settings: Mapping[str, str | None], host: HostView) -> list[dict[str, Any]]:
    """Return module options for parameters whose module may load after sysctl.d was read."""
    options = {name.removeprefix("sunrpc."): value for name, value in settings.items() if name.endswith(SLOTS)}
    path = "/etc/modprobe.d/nodetune-sunrpc.conf"
    more = {"options": {"sunrpc": options}}
    return [own_file(host, path, "modprobe.conf.j2", more, modprobe.allowed("sunrpc"))] if options else []


def _allowed(host: HostView) -> Allowed:
    """Allow the parameters that checks set, and those that are cleared with them."""
    known = host.targets("sysctl")
    return among(known | {twin(name) for name in known})


def twin(name: str) -> str:
    """Return the parameter that writing this one clears (vm.dirty_bytes ↔ vm.dirty_ratio); empty for most."""
    if name.startswith("vm.dirty_"):
        for mine, other in CLEAR:
            if name.endswith(f"_{mine}"):
                return name.removesuffix(mine) + other
    return ""


def _say_who_else_sets(name: str, value: str, host: HostView) -> None:
    """Add notes on lines of others that still win at the next boot. Only their owner may edit them."""
    for each in filter(None, (name, twin(name))):
        found = host.readable(f"persisted.sysctl.{each}") or {}
        file = PurePosixPath(str(found.get("file", "")))
        agrees = each == name and bool(found) and text_of(found["value"]) == value
        _say_who_reads_last(name, each, value, host, wins=str(file) == READ_LAST)
        if file.parent.name == "sysctl.d" and file.name > PurePosixPath(PATH).name:
            host.note(
                f"{file} line {found['line']} sets {each} too and is read after {PATH}: it wins at the next boot, "
                "unless it is a pattern. Remove that line."
            )
        elif found and not agrees and file.parent.name != "sysctl.d":
            host.note(set_later(found, each))


def set_later(found: Mapping[str, Any], what: str) -> str:
    """Describe a line of a unit or a script that sets a value at each boot after nodetune's file."""
    return f"{found['file']} line {found['line']} sets {what} later in each boot: it wins then. Remove that line."


def _say_who_reads_last(name: str, each: str, value: str, host: HostView, *, wins: bool) -> None:
    """Add a note on a line of /etc/sysctl.conf. Raise UnfixableError if it wins: also at once, when tuned changes its profile."""
    late = (host.readable("persisted.sysctl_conf") or {}).get(each)
    if not late or (each == name and text_of(late["value"]) == value):
        return
    line = f"{READ_LAST} line {late['line']} sets {each} = {text_of(late['value'])}"
    if wins:
        raise UnfixableError(
            f"{line}, and tuned (reapply_sysctl) or a script reads that file last at each boot: remove that line, then "
            "plan again"
        )
    host.note(f"{line}: `sysctl --system` reads that file last, and then it wins. Remove that line.")


def _against_tuned(name: str, value: str, host: HostView) -> _tuned.Places:
    """Return what to set against the active profile of tuned; a note alone where sysctl.d wins and no profile can be put before."""
    profile = _tuned.active(host)
    theirs = _tuned.of_sysctl(profile, [name, *filter(None, [twin(name)])], value)
    if theirs and _tuned.in_the_way(profile) and profile.get("reapply_sysctl", True):
        host.note(
            f"tuned's profile {profile.get('name')} also sets {name}: sysctl.d wins over it as long as "
            f"tuned-main.conf does not say reapply_sysctl = 0. It stays active: {_tuned.in_the_way(profile)}."
        )
        return {}
    return theirs
