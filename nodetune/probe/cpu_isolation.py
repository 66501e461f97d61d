"""Isolated CPUs, and the CPUs that each control group may use: part of `cpu.*`."""

import os

from nodetune.onhost import cpu_list

from . import read

CGROUPS = "/sys/fs/cgroup"
GROUPS = ("init.scope", "system.slice", "user.slice", "machine.slice", "kubepods.slice")
UNIT_FOLDERS = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
) + read.UNIT_FOLDERS


def facts():
    """Yield the facts (name, fact)."""
    for name in ("isolated", "nohz_full"):
        path = "/sys/devices/system/cpu/" + name
        yield name, read.file_fact(path, lambda content: content.replace("(null)", "").strip())
    yield "cpusets", read.tried(_cpusets)
    yield "allowed_cpus", read.tried(_allowed_cpus)


def _cpusets():
    """Return the CPUs that each top-level control group may use, if a cpuset limits it.

    Example: {"system.slice": {"cpus": "0-3", "count": 4}}. A group that is not named has no limit of its own.
    """
    unified = read.exists(CGROUPS + "/cgroup.controllers")
    root, leaf = (CGROUPS, "cpuset.cpus.effective") if unified else (CGROUPS + "/cpuset", "cpuset.effective_cpus")
    if not read.exists(root):
        return read.absent("no cpuset control groups here")
    found = {}
    for name in read.names_in(root):
        path = os.path.join(root, name, leaf)
        if read.exists(path):
            found[name] = _group(cpu_list.parse(read.text(path)))
    return read.value(found)


def _group(cpus, **more):
    return dict(more, cpus=cpu_list.fold(set(cpus)), count=len(set(cpus)))


def _allowed_cpus():
    """Return the CPUs that systemd's AllowedCPUs= allows each group.

    Example: {"system.slice": {"cpus": "0-3", "count": 4, "file": …, "line": …}}.
    """
    found = {}
    for unit in GROUPS:
        for path in read.with_drop_ins(UNIT_FOLDERS, unit):
            for number, line in read.numbered_lines(path):
                name, _, setting = line.partition("=")
                if name.strip() == "AllowedCPUs":
                    _add_allowed(found, unit, setting, file=path, line=number)
    return read.value(found)


def _add_allowed(found, unit, setting, **place):
    """Add a setting: several lines add up, an empty one clears those before it, an invalid one is ignored."""
    if not setting.strip():
        found.pop(unit, None)
        return
    try:
        cpus = cpu_list.parse(",".join(setting.split()))
    except ValueError:
        return
    before = cpu_list.parse(found[unit]["cpus"]) if unit in found else []
    found[unit] = _group(before + cpus, **place)
