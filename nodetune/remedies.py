"""The remedy kinds as constructors. One kind = one way to change a host, with its running and its persisted side.

A check names what it changes; how disruptive that is, and which fact tells what the next boot will do, is known
here once for all checks of a kind. Values to set live in the check (or the profile), never here.
"""

from __future__ import annotations

from typing import Any

from nodetune.model import Remedy


def sysctl(name: str, boot_default: Any = None) -> Remedy:
    """A kernel parameter: sysctl -w now, sysctl.d for the next boot."""
    return Remedy(
        "sysctl",
        name,
        persisted=f"persisted.sysctl.{name}",
        boot_default=boot_default,
        file="/etc/sysctl.d/zz-nodetune.conf",
    )


def sysfs(path: str, boot_default: Any = None) -> Remedy:
    """A file under /sys: written now, tmpfiles.d for the next boot.

    Of several tmpfiles.d lines that write the same path the one in the file that sorts first wins (seen with
    systemd 252), the opposite of sysctl.d: hence 00-.
    """
    return Remedy(
        "sysfs",
        path,
        persisted=f"persisted.tmpfiles.{path}",
        boot_default=boot_default,
        file="/etc/tmpfiles.d/00-nodetune.conf",
    )


def kernel_arg(name: str) -> Remedy:
    """A kernel argument of the next boot (grub drop-in, or grubby)."""
    return Remedy(
        "kernel_arg",
        name,
        disruption="reboot",
        persisted=f"cmdline.installed.{name}",
        file="/etc/default/grub.d/zz-nodetune.cfg",
    )


def limit(item: str) -> Remedy:
    """A resource limit in every place that hands it out: PAM, systemd's defaults, the launching services."""
    return Remedy(
        "limit", item, disruption="service restart", file="/etc/security/limits.d/zz-nodetune.conf", per_subject=True
    )


def systemd_dropin(unit: str, section: str, key: str, disruption: str = "service restart") -> Remedy:
    """One setting of a unit (or of system.conf, logind.conf) in a drop-in file."""
    return Remedy(
        "systemd_dropin",
        f"{unit} [{section}] {key}",
        {"unit": unit, "section": section, "key": key},
        disruption,
        file=f"/etc/systemd/{'' if unit.endswith('.conf') else 'system/'}{unit}.d/zz-nodetune.conf",
    )


def service(unit: str, disruption: str = "none") -> Remedy:
    """Whether a service runs and is started at boot: `set` is enabled, disabled or masked."""
    return Remedy("service", unit, disruption=disruption)


def module(name: str) -> Remedy:
    """A kernel module, loaded now and by modules-load.d."""
    return Remedy("module", name, file=f"/etc/modules-load.d/nodetune-{name}.conf")


def modprobe(name: str, disruption: str = "reboot") -> Remedy:
    """A module's options or its blacklisting."""
    return Remedy("modprobe", name, disruption=disruption, file=f"/etc/modprobe.d/nodetune-{name}.conf")


def block_queue(attribute: str) -> Remedy:
    """An attribute under /sys/block/*/queue: written now, udev for the next boot."""
    return Remedy("block_queue", attribute, file="/etc/udev/rules.d/99-zz-nodetune-block.rules", per_subject=True)


def cpufreq(attribute: str) -> Remedy:
    """Governor, EPP, boost or idle states: written now, a unit for the next boot."""
    return Remedy("cpufreq", attribute, file="/etc/systemd/system/nodetune-cpu.service", per_subject=True)


def irq_affinity() -> Remedy:
    """Interrupts on the CPUs local to their device, recomputed at each boot."""
    return Remedy("irq_affinity", "interrupts", file="/etc/systemd/system/nodetune-irq.service")


def swap_off() -> Remedy:
    """Swap off now, and kept off (fstab, swap units)."""
    return Remedy("swap_off", "swap", disruption="idle node", file="/etc/fstab")


def mount_option(option: str) -> Remedy:
    """An option of a mounted file system."""
    return Remedy("mount_option", option, disruption="idle node", file="/etc/fstab", per_subject=True)


def net_link(setting: str, disruption: str = "network flap") -> Remedy:
    """MTU, rings, channels or coalescing of a network link, kept in a .link file."""
    return Remedy(
        "net_link", setting, disruption=disruption, file="/etc/systemd/network/00-nodetune-*.link", per_subject=True
    )


def nccl_conf(name: str) -> Remedy:
    """A line of /etc/nccl.conf."""
    return Remedy("nccl_conf", name, disruption="new sessions", file="/etc/nccl.conf")


def docker_daemon(key: str) -> Remedy:
    """A key of /etc/docker/daemon.json."""
    return Remedy("docker_daemon", key, disruption="service restart", file="/etc/docker/daemon.json")


def gpu(setting: str, disruption: str = "none") -> Remedy:
    """A setting of GPUs through NVML, restored at boot by a unit."""
    return Remedy(
        "gpu", setting, disruption=disruption, file="/etc/systemd/system/nodetune-gpu.service", per_subject=True
    )


def manual(steps: str) -> Remedy:
    """Nothing that a tool may do by itself: exact steps for a person."""
    return Remedy("manual", steps=steps)
