"""The remedy kinds as constructors. One kind = one way to change a host, with its running and its persisted side.

A check names what it changes. The disruption and the fact with the next boot's value are defined
here once for all checks of a kind. Values to set are in the check (or the profile), never here.
"""

from __future__ import annotations

from typing import Any

from nodetune.api.model import Remedy


def sysctl(name: str, boot_default: Any = None) -> Remedy:
    """Set a kernel parameter: now with sysctl -w, at boot with sysctl.d."""
    return Remedy(
        "sysctl",
        name,
        persisted=f"persisted.sysctl.{name}",
        boot_default=boot_default,
        file="/etc/sysctl.d/zz-nodetune.conf",
    )


def sysfs(path: str, boot_default: Any = None) -> Remedy:
    """Write a file under /sys: now, and at boot with tmpfiles.d.

    If several tmpfiles.d lines write the same path, the file that sorts first wins (seen with systemd 252). sysctl.d
    does the opposite: hence 00-.
    """
    return Remedy(
        "sysfs",
        path,
        persisted=f"persisted.tmpfiles.{path}",
        boot_default=boot_default,
        file="/etc/tmpfiles.d/00-nodetune.conf",
    )


def kernel_arg(name: str, *alike: str) -> Remedy:
    """Set a kernel argument for the next boot (GRUB drop-in, or grubby). `alike`: others that do the same (`NAME=VALUE`)."""
    return Remedy(
        "kernel_arg",
        name,
        disruption="reboot",
        persisted=f"cmdline.installed.{name}",
        file="/etc/default/grub.d/zz-nodetune.cfg",
        alike=alike,
    )


def limit(item: str) -> Remedy:
    """Set a resource limit in all its sources: PAM, systemd's defaults, the launching services."""
    return Remedy(
        "limit", item, disruption="service restart", file="/etc/security/limits.d/zz-nodetune.conf", per_subject=True
    )


def systemd_dropin(unit: str, section: str, key: str) -> Remedy:
    """Set one key of a unit (or of system.conf, logind.conf) in a drop-in file."""
    return Remedy(
        "systemd_dropin",
        f"{unit} [{section}] {key}",
        {"unit": unit, "section": section, "key": key},
        "service restart",
        file=f"/etc/systemd/{'' if unit.endswith('.conf') else 'system/'}{unit}.d/zz-nodetune.conf",
    )


def service(unit: str = "", disruption: str = "none", steps: str = "") -> Remedy:
    """Set whether a service runs and starts at boot: `set` is enabled, disabled or masked. No unit: those that the check names.

    `steps`: what an admin does where neither the check nor the site sets it.
    """
    return Remedy("service", unit or "units", disruption=disruption, steps=steps, per_subject=not unit)


def module(name: str) -> Remedy:
    """Load a kernel module: now, and at boot with modules-load.d."""
    return Remedy("module", name, file=f"/etc/modules-load.d/nodetune-{name}.conf")


def modprobe(name: str, disruption: str = "reboot") -> Remedy:
    """Set the options of a kernel module, or blacklist it."""
    return Remedy("modprobe", name, disruption=disruption, file=f"/etc/modprobe.d/nodetune-{name}.conf")


def block_queue(attribute: str) -> Remedy:
    """Set an attribute under /sys/block/*/queue: now, and at boot with udev."""
    return Remedy("block_queue", attribute, file="/etc/udev/rules.d/99-zz-nodetune-block.rules", per_subject=True)


def cpufreq(attribute: str) -> Remedy:
    """Set governor, EPP, boost or idle states: now, and at boot by a systemd unit."""
    return Remedy("cpufreq", attribute, file="/etc/systemd/system/nodetune-cpu.service", per_subject=True)


def irq_affinity() -> Remedy:
    """Place interrupts on the CPUs local to their device, again at each boot."""
    service = "service restart"  # irqbalance restarts, or is stopped where it cannot be told to leave interrupts alone
    return Remedy("irq_affinity", "interrupts", disruption=service, file="/etc/systemd/system/nodetune-irq.service")


def swap_off() -> Remedy:
    """Turn swap off, and keep it off (fstab, swap units)."""
    return Remedy("swap_off", "swap", disruption="idle node", file="/etc/fstab")


def mount_option(option: str) -> Remedy:
    """Set an option of a mounted file system."""
    return Remedy("mount_option", option, disruption="idle node", file="/etc/fstab", per_subject=True)


def nfs_option(option: str) -> Remedy:
    """Set an option of NFS mounts in fstab or in a map of the automounter. It takes effect at the next boot."""
    return Remedy("nfs_option", option, disruption="reboot", file="/etc/fstab", per_subject=True)


def nfs_read_ahead() -> Remedy:
    """Set the read-ahead of NFS mounts: now, and at each mount with udev."""
    file = "/etc/udev/rules.d/99-zz-nodetune-nfs.rules"
    return Remedy("nfs_read_ahead", "read_ahead_kb", file=file, per_subject=True)


def lustre_param(name: str) -> Remedy:
    """Set a parameter of Lustre clients: now, and by a unit after each mount."""
    return Remedy("lustre_param", name, file="/etc/systemd/system/nodetune-lustre.service", per_subject=True)


def net_link(setting: str, disruption: str = "network flap", steps: str = "") -> Remedy:
    """Set MTU, rings, channels or coalescing of a network link: now, and at boot with a .link file, or by who sets its MTU.

    `steps`: what an admin does where neither the check nor the site sets it.
    """
    file = "/etc/systemd/network/00-nodetune-*.link"
    return Remedy("net_link", setting, disruption=disruption, file=file, steps=steps, per_subject=True)


def nccl_conf(name: str = "", steps: str = "", file: str = "/etc/nccl.conf") -> Remedy:
    """Set a variable in /etc/nccl.conf. Without a name: remove the failing lines, whose subjects are `FILE:LINE NAME`.

    `steps`: what an admin does with the lines that the check leaves alone. `file`: remove the variables of the subjects from it.
    """
    target = name or ("lines" if file == "/etc/nccl.conf" else "variables")
    return Remedy("nccl_conf", target, disruption="new sessions", file=file, steps=steps, per_subject=not name)


def docker_daemon(key: str) -> Remedy:
    """Set a key in /etc/docker/daemon.json."""
    return Remedy("docker_daemon", key, disruption="service restart", file="/etc/docker/daemon.json")


def engine_conf(setting: str) -> Remedy:
    """Set a default limit of containers: `podman memlock` or `crio memlock`; `pids_limit` of the failing engines."""
    disruption = "new sessions" if setting.startswith("podman ") else "service restart"
    folder = "/etc/crio/crio.conf.d" if setting.startswith("crio ") else "/etc/containers/containers.conf.d"
    per_subject = " " not in setting
    return Remedy(
        "engine_conf", setting, disruption=disruption, file=f"{folder}/zz-nodetune.conf", per_subject=per_subject
    )


def gpu(setting: str, disruption: str = "none") -> Remedy:
    """Change a setting of GPUs through NVML; a systemd unit restores it at boot. The GPU itself persists ECC."""
    file = "" if setting == "ecc_mode" else "/etc/systemd/system/nodetune-gpu.service"
    return Remedy("gpu", setting, disruption=disruption, file=file, per_subject=True)


def system_cpus() -> Remedy:
    """Confine system tasks to some CPUs: AllowedCPUs= of systemd's own groups. systemd sets it when it reloads."""
    file = "/etc/systemd/system/system.slice.d/zz-nodetune.conf"
    return Remedy("system_cpus", "AllowedCPUs", disruption="daemon reload", file=file, per_subject=True)


def mps() -> Remedy:
    """Run the control daemon of CUDA MPS in nodetune's own unit, with the GPUs in exclusive process mode."""
    return Remedy("mps", "mps", disruption="idle GPU", file="/etc/systemd/system/nodetune-mps.service")


def apt_conf() -> Remedy:
    """Have unattended-upgrades leave the failing packages alone; `set` is kept."""
    return Remedy("apt_conf", "Package-Blacklist", file="/etc/apt/apt.conf.d/zz-nodetune", per_subject=True)


def manual(steps: str) -> Remedy:
    """Describe the exact manual steps for a fault that a tool must not fix by itself."""
    return Remedy("manual", steps=steps)


def repair(steps: str) -> Remedy:
    """Describe the steps for a fault that makes jobs fail, or give wrong results, until an admin has done them."""
    return Remedy("manual", steps=steps, repair=True)
