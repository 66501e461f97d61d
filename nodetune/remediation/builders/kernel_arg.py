"""Kernel arguments of the next boot: a file for GRUB's configuration on Debian and Ubuntu, grubby on the RHEL family."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import among, named, own_file, text_of
from nodetune.remediation.host_view import HostView, UnfixableError

PATH = "/etc/default/grub.d/zz-nodetune.cfg"
NEEDS = (
    *("cmdline.installed", "cmdline.grub_later", "host.container", "host.arch", "host.kernel"),
    *("pci.gpus", "pci.devices", "pci.acs", "pci.iommu.domains"),
)
SAFE = r"[\w.,:=@/+%-]*"
"""Characters that a shell, GRUB's language and the kernel all take literally: GRUB ends a command at a semicolon."""
ADDRESS_SPACES = (6, 11)
"""The first kernel whose SMMU driver gives a device address spaces of processes (PASID) although it passes its own DMA."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    settings = {
        named(fix.target, "kernel argument", r"[\w.-]+"): named(text_of(fix.value), "value of a kernel argument", SAFE)
        for fix in fixes
    }
    _require_cuda(host, settings)
    if host.family == "rhel":
        return [
            {"change": "bootarg", "name": fix.target, "value": settings[fix.target], "checks": host.checks(fix)}
            for fix in fixes
        ]
    _require_grub(host, " ".join(argument(*each) for each in settings.items()))
    _require_last(host, settings)
    file = own_file(host, PATH, "grub.cfg.j2", settings, among(host.targets("kernel_arg"), SAFE))
    installed = all(_installed(host, *each) for each in settings.items())
    return [file, {"change": "run", "run": "update-grub", **({} if installed else {"always": True})}]


def argument(name: str, value: str) -> str:
    """Format an argument for the kernel's command line; a bare flag has an empty value."""
    return f"{name}={value}" if value else name


def _require_cuda(host: HostView, settings: Mapping[str, str]) -> None:
    """Raise UnfixableError if CUDA could not start after the next boot of an Arm host; in doubt it could not.

    With ACS on the way to the root, a GPU may use address spaces of processes, and the driver asks for them. An older
    kernel refuses that to a device that passes the SMMU: "CUDA: device busy". https://github.com/NVIDIA/nodewright-packages/pull/122
    """
    if (
        host.readable("host.arch") != "aarch64"
        or not {"iommu.passthrough", "pci"} & set(settings)
        or not host["pci.gpus"]
    ):
        return
    release = str(host["host.kernel"])
    found = re.match(r"(\d+)\.(\d+)", release)
    old = not found or tuple(map(int, found.groups())) < ADDRESS_SPACES
    boot = {**host.readable("cmdline.installed", {}).get("arguments", {}), **settings}
    if (
        old
        and _passes(host, boot.get("iommu.passthrough"))
        and ("config_acs" in boot.get("pci", "") or _controlled(host))
    ):
        raise UnfixableError(
            f"kernel {release}: with iommu.passthrough=1 and ACS, CUDA would start on no GPU. Boot Linux 6.11 or newer (ACS "
            "alone also works with iommu.passthrough=0), then plan again"
        )


def _passes(host: HostView, argument: str | None) -> bool:
    """Return whether DMA of a GPU will pass the SMMU: by the argument of the next boot, else as it is now."""
    if argument is not None:
        return argument[:1].lower() in ("1", "y", "t") or argument.lower() == "on"
    domains = host.get("pci.iommu.domains", {})
    return any(domains.get(gpu) == "identity" for gpu in host["pci.gpus"])


def _controlled(host: HostView) -> bool:
    """Return whether a port above a GPU has access controls on."""
    ports, devices = host.get("pci.acs", {}), host["pci.devices"]
    return any(ports.get(port, {}).get("enabled") for gpu in host["pci.gpus"] for port in devices[gpu]["parents"])


def _require_grub(host: HostView, wanted: str) -> None:
    """Raise UnfixableError unless GRUB starts this host from Debian's files.

    Raise FactUnreadError if unknown.
    """
    boot = host.get("cmdline.installed") or {}
    if host.family != "debian" or "/grub" not in str(boot.get("file", "")):
        loader = boot.get("file") or "no supported boot loader configuration"
        raise UnfixableError(
            f"neither GRUB with Debian's files nor grubby ({loader}): give the kernel {wanted} manually"
        )


def _installed(host: HostView, name: str, value: str) -> bool:
    """Return whether the boot loader starts the kernel with an argument: update-grub may have missed our file."""
    return bool((host.readable(f"cmdline.installed.{name}") or {}).get("value") == value)


def _require_last(host: HostView, settings: Mapping[str, str]) -> None:
    """Raise UnfixableError if GRUB reads another file after ours that drops or replaces one of these arguments."""
    for each in host.readable("cmdline.grub_later") or ():
        keeps = re.match(r"\+=|.*\$\{?GRUB_CMDLINE_LINUX_DEFAULT\b", each["value"])
        theirs = {word.partition("=")[0] for word in re.findall(r"[^\s\"'=]+=?", each["value"].partition("=")[2])}
        replaced = sorted(theirs & set(settings)) if keeps else sorted(settings)
        if replaced:
            raise UnfixableError(
                f"{each['file']} line {each['line']} sets GRUB_CMDLINE_LINUX_DEFAULT{each['value']} and is read after "
                f"{PATH}: it wins over {', '.join(replaced)}. Remove that line, then plan again"
            )
