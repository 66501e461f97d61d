"""The CPUs of system tasks: AllowedCPUs= of init.scope, system.slice and user.slice, in drop-in files.

systemd applies the settings of its groups when it reloads, but cannot free them: a handler does. Where jobs run below one of
the groups, or may, nothing is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.checks.shared import job_cpus
from nodetune.foundation.text import own_settings
from nodetune.onhost import cpu_list
from nodetune.remediation.builders import _dropin
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = (
    *job_cpus.NEEDS,
    "containers.cgroup_v2",
    "cpu.allowed_cpus",
    "cpu.cpusets",
    "cpu.online",
    "numa.nodes",
    "pci.devices",
    "pci.gpus",
)
SECTIONS = {unit: section.strip("[]") for unit, section, _ in _dropin.CPUS}
KEY = "AllowedCPUs"


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    _require_jobs_elsewhere(" ".join(str(fix.value) for fix in fixes), host)
    made: list[dict[str, Any]] = []
    for fix in fixes:
        cpus = _cpus(fix.value, host)
        for unit in fix.subjects:
            _require_alone(unit, host)
            made.append(_dropin.change(host, unit, {SECTIONS[unit]: {KEY: cpus}}) | {"checks": host.checks(fix)})
    units = [unit for fix in fixes for unit in fix.subjects]
    free = [{"change": "run", "run": f"free-cpus {unit}", "of": _dropin.path_of(unit)} for unit in units]
    return [*made, *_dropin.handlers(units), *free]


def _require_jobs_elsewhere(cpus: str, host: HostView) -> None:
    """Raise UnfixableError unless jobs are seen to run outside of the groups: in the kubelet's."""
    if not host["containers.cgroup_v2"]:
        raise UnfixableError("AllowedCPUs= needs control groups v2: boot with systemd.unified_cgroup_hierarchy=1 first")
    who = job_cpus.in_system_slice(host)
    if who:
        raise UnfixableError(
            f"{who} runs jobs in system.slice, so the jobs would get its CPUs. {_instead(who, cpus, host)}"
        )
    if not any(name.startswith("kubepods") for name in host["cpu.cpusets"]):
        raise UnfixableError(
            "no group kubepods with a cpuset exists next to system.slice: jobs may run in system.slice or user.slice and would get only those CPUs"
        )


def _instead(who: str, cpus: str, host: HostView) -> str:
    """Return the line that keeps jobs off the CPUs, or out of system.slice."""
    if who.startswith("Slurm"):
        return (
            f"Write into slurm.conf: NodeName={host.name} CpuSpecList={cpus} (in Slurm's numbers: by socket, core and thread), "
            "keep the other settings of that node, and restart slurmd while no job runs"
        )
    return (
        'Write into /etc/docker/daemon.json: "cgroup-parent": "containers.slice", restart Docker, and make every container again; '
        f"then run systemctl set-property system.slice {KEY}={cpus}"
    )


def _require_alone(unit: str, host: HostView) -> None:
    """Raise UnfixableError if another file sets the CPUs of the unit too: the lists of all files add up."""
    found = host["cpu.allowed_cpus"].get(unit)
    path = _dropin.path_of(unit)
    ours = own_settings(host.own(path)).get(SECTIONS[unit], {}).get(KEY)
    if found and (found["file"] != path or found["cpus"] != ours):
        file = f"{found['file']} line {found['line']}" if found["file"] != path else "a file"
        raise UnfixableError(
            f"{file} sets {KEY}= of {unit} too, and the lists add up: remove that line (systemctl cat {unit})"
        )


def _cpus(wanted: Any, host: HostView) -> str:
    """Return the CPUs as the kernel lists them. Raise UnfixableError for others than those that are there and near no GPU."""
    text = str(wanted)
    cpus = set(cpu_list.parse_or_empty(text))
    every = set(cpu_list.parse(host["cpu.online"]))
    if not cpus or cpu_list.fold(cpus) != text:
        raise UnfixableError(f"{text!r} is not a CPU list in the kernel's format (0-3,8): fix the site file")
    if cpus - every:
        raise UnfixableError(
            f"the CPUs {cpu_list.fold(cpus - every)} are not online here (online: {host['cpu.online']})"
        )
    near = _near_gpus(host)
    if cpus & near and every - near:
        raise UnfixableError(
            f"the CPUs {cpu_list.fold(cpus & near)} are near a GPU, {cpu_list.fold(every - near)} are near none: declare some of the latter"
        )
    if cpus & near:
        host.note(f"every CPU here is near a GPU, so {text} are taken from the best CPUs for jobs.")
    return text


def _near_gpus(host: HostView) -> set[int]:
    """Return the CPUs of the NUMA nodes that have a GPU."""
    devices, nodes = host.get("pci.devices") or {}, host["numa.nodes"]
    homes = {str(devices.get(bdf, {}).get("numa_node")) for bdf in host.get("pci.gpus") or []}
    return {cpu for home in homes for cpu in cpu_list.parse(nodes.get(home, {}).get("cpus", ""))}
