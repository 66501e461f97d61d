"""Kernel arguments of the next boot: a file for GRUB's configuration on Debian and Ubuntu, grubby on the RHEL family."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import among, named, own_file, text_of
from nodetune.remediation.host_view import HostView, UnfixableError

PATH = "/etc/default/grub.d/zz-nodetune.cfg"
NEEDS = ("cmdline.installed", "cmdline.grub_later", "host.container")
SAFE = r"[\w.,:;=@/+%-]*"
"""Characters that a shell, GRUB's language and the kernel all take literally."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    settings = {
        named(fix.target, "kernel argument", r"[\w.-]+"): named(text_of(fix.value), "value of a kernel argument", SAFE)
        for fix in fixes
    }
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
