"""What a fix sets is what its check reads: now, or at the next boot.

Files, CPUs and modules: the changes are carried out in a folder, collected from there by the probe, and judged again. Kernel
arguments: judged by what the kernel's documentation says of them (ARGUMENTS). Everything else: the changes name what the check
reads (READ).
"""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from nodetune.probe import read
from tests.unit.checks.test_cases import judge
from tests.unit.remediation.test_fixes_of_cases import FAILING, FIXABLE, plans

sys.path.insert(0, str(Path(__file__).parents[3] / "playbooks/module_utils"))

from nodetune_host.resources import cpu, value

CARRIED_OUT = {"block_queue", "cpufreq", "kernel_arg", "module", "sysctl", "sysfs"}
COLLECTED = {"cpu", "memory", "modules", "pci", "persisted", "sysctl"}
"""Families of facts that come from the folder afterwards; the rest of the host is as the case has it."""

HOST = {
    "/proc/meminfo": "MemFree: 1 kB\n",
    "/proc/cpuinfo": "processor : 0\n",
    "/sys/devices/system/cpu/online": "0\n",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
    "/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference": "power\n",
    "/sys/devices/system/cpu/cpu0/cpufreq": "-> ../cpufreq/policy0",
    "/sys/devices/system/cpu/intel_pstate/max_perf_pct": "80\n",
    "/sys/devices/system/cpu/intel_pstate/min_perf_pct": "10\n",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    **{
        f"/sys/devices/system/cpu/cpu0/cpuidle/{state}/{name}": f"{text}\n"
        for state, latency in (("state0", 2), ("state1", 170))
        for name, text in (("name", state), ("latency", latency), ("disable", 0))
    },
}

ARGUMENTS = {
    "iommu=pt": {"pci.iommu.domains": {"each": {"0000:19:00.0": {"value": "identity"}}}},
    "init_on_alloc=0": {"kernel.init_on_alloc": {"value": "0"}},
    "nvme_core.io_timeout=4294967295": {"block.nvme_io_timeout": {"value": 4294967295}},
}
"""Kernel argument → the facts after a boot with it (docs.kernel.org/admin-guide/kernel-parameters.html)."""

FILES = {
    r"/proc/sys/vm/(dirty\w*)_bytes": lambda found, _: {f"sysctl.vm.{found[1]}_ratio": {"value": 0}},
    r"/proc/sys/net/ipv4/conf/all/(\w+)": lambda found, to: {"net.ipv4_conf": {"value": {"all": {found[1]: int(to)}}}},
    r"/sys/block/(\w+)/queue/scheduler": lambda found, to: {"block.scheduler": {"each": {found[1]: {"value": to}}}},
    r"/sys/block/(\w+)/queue/read_ahead_kb": lambda found, to: {
        "mounts.read_ahead_kb": {"each": {found[1]: {"value": int(to)}}}
    },
}
"""Files whose facts take more of a host than a folder: what the kernel makes of them."""

READ = {
    ("apt_conf", "Package-Blacklist"): "updates.apt",
    ("docker_daemon", "default-ulimits"): "containers.docker",
    ("docker_daemon", "default-shm-size"): "containers.docker",
    ("engine_conf", "podman memlock"): "containers.podman",
    ("engine_conf", "crio memlock"): "containers.crio",
    ("engine_conf", "pids_limit"): "containers.podman",
    ("gpu", "applications_clocks"): "gpu.applications_clock.sm",
    ("gpu", "locked_clocks"): "gpu.clock_info.sm",
    ("gpu", "locked_memory_clocks"): "gpu.clock_info.memory",
    ("gpu", "power_limit"): "gpu.power_management_limit",
    ("irq_affinity", "interrupts"): "irq.devices",
    ("lustre_param", "llite.max_read_ahead_mb"): "lustre.llite",
    ("lustre_param", "llite.statahead_max"): "lustre.llite",
    ("lustre_param", "osc.max_rpcs_in_flight"): "lustre.osc",
    ("mount_option", "async"): "mounts.points",
    ("mount_option", "barrier"): "mounts.points",
    ("mount_option", "noatime"): "mounts.points",
    ("mount_option", "nodiscard"): "mounts.points",
    ("mps", "mps"): "mps.daemons",
    ("net_link", "adaptive-rx"): "net.coalescing",
    ("net_link", "channels"): "net.channels",
    ("net_link", "mtu"): "net.links",
    ("net_link", "rings"): "net.rings",
    ("nccl_conf", "variables"): "cpu.thread_settings",
    ("nfs_option", "caches"): "mounts.points",
    ("nfs_option", "nconnect"): "mounts.nfs",
    ("nfs_read_ahead", "read_ahead_kb"): "mounts.nfs_read_ahead_kb",
    ("swap_off", "swap"): "memory.swaps",
    ("system_cpus", "AllowedCPUs"): "cpu.allowed_cpus",
    ("systemd_dropin", "logind.conf [Login] RemoveIPC"): "services.remove_ipc",
}
"""Kind and target of a fix → the fact of it; the others are in FACT."""

OF_CHECK = {
    "background-services-running": "services.running",
    "background-timers-active": "services.man-db.timer",
    "nouveau-loaded": "pci.devices",
}
"""Check → the fact of its fix, where others with that kind and target read another."""

FACT = {
    "gpu": "gpu.{}",
    "limit": "limits.{}",
    "modprobe": "modules.blacklist.{}",
    "nccl_conf": "nccl.settings",
    "service": "services.{}",
}

WORDS = {
    ("nccl_conf", "lines"): "without_lines",
    ("nccl_conf", "variables"): "assignments",
    ("irq_affinity", "interrupts"): '"change": "irqs"',
    ("systemd_dropin", "logind.conf [Login] RemoveIPC"): "RemoveIPC=no",
    **{("limit", name): name for name in ("memlock", "nofile", "nproc", "rtprio", "stack")},
    ("limit", "core"): "LimitCORE=0",
    ("engine_conf", "podman memlock"): "memlock=-1:-1",
    ("engine_conf", "crio memlock"): "memlock=-1:-1",
    ("nfs_option", "caches"): '"remove": ["noac"',
    ("service", "units"): '"enabled": "masked", "active": "stopped"',
}
"""What the changes of a fix have in them, where that is not its target."""


BEFORE = {
    "epp-not-performance": {"/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n"},
}
"""What a check wants first of the host, for which another one is."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """folder(check) is a new folder with the files of a host."""
    cpus = cpu.CPUS

    def folder(check):
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        monkeypatch.setattr(read, "ROOT", str(root))
        monkeypatch.setattr(cpu, "CPUS", str(root) + cpus)
        for path, text in {**HOST, **BEFORE.get(check.id, {})}.items():
            plant(root, path, text)
        return root

    return folder


def plant(root, path, text):
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(text[3:]) if text.startswith("-> ") else place.write_text(text)


def carry_out(change, root):
    """Make a change in the folder as the host would. Return the facts that show it and do not come from the folder."""
    if change["change"] == "value":
        plant(root, change["path"], "1\n")
        there = {**change, "path": str(root) + change["path"]}
        value.put(there, value.wanted(there, value.read(there)))
        met = ((re.fullmatch(path, change["path"]), facts) for path, facts in FILES.items())
        return next((facts(found, change["value"]) for found, facts in met if found), {})
    if change["change"] == "cpu":
        cpu.put(change, cpu.wanted(change, cpu.read(change)))
    elif change["change"] == "module":
        plant(root, "/proc/modules", f"{change['name']} 16384 0 - Live 0x0000000000000000\n")
    elif change["change"] == "file":
        plant(root, change["path"], change["content"])
        words = re.findall(r"[\w.]+=\w+", change["content"]) if change["path"].endswith(".cfg") else ()
        return {name: fact for word in words for name, fact in ARGUMENTS.get(word, {}).items()}
    return {}


def collected(names):
    """The facts of these names that are in the folder."""
    families = {}
    for family, _, name in (each.partition(".") for each in names):
        families.setdefault(family, []).append(name)
    found = {
        f"{family}.{name}": fact
        for family in families.keys() & COLLECTED
        for name, fact in importlib.import_module(f"nodetune.probe.{family}").collect(families[family], print)
    }
    return {name: found[name] for name in names if {"value", "each"} & set(found.get(name, ()))}


def names_read(check):
    return {check.fact, *check.needs, check.remedy.persisted} - {None}


def built(check):
    """Each failing case that changes come of, and these."""
    for case, (groups, _) in zip(FAILING[check.id], plans(check), strict=False):
        if groups:
            yield case, [change for group in groups for change in group.changes]


def merged(old, new):
    """Facts with others over them, mapping by mapping."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: merged(old.get(key), each) for key, each in new.items()}}


def after(check, case, changes, root):
    """The verdict on the host of a failing case when the changes have been made."""
    facts = {name: fact for name, fact in case.items() if name != "finding"}
    assert judge(check, dict(facts)).status == "fail"
    for change in changes:
        facts = merged(facts, carry_out(change, root))
    return judge(check, {**facts, **collected(names_read(check))})


def of_kinds(known):
    return [pytest.param(check, id=check.id) for check in FIXABLE if (check.remedy.kind in CARRIED_OUT) is known]


@pytest.mark.parametrize("check", of_kinds(known=True))
def test_a_fix_that_is_carried_out_changes_what_its_check_reads(check, folder):
    found = [after(check, case, changes, folder(check)) for case, changes in built(check)]
    assert "pass" in {each.status for each in found}, [(each.status, each.observed, each.reason) for each in found]


@pytest.mark.parametrize("check", of_kinds(known=False))
def test_a_fix_names_what_its_check_reads(check):
    kind, target = check.remedy.kind, check.remedy.target
    fact = OF_CHECK.get(check.id) or READ.get((kind, target)) or FACT[kind].format(target)
    assert fact in names_read(check)
    word = WORDS.get((kind, target), target.rpartition(".")[2])
    assert any(word in json.dumps(changes) for _, changes in built(check))
