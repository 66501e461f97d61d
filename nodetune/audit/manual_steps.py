"""Steps and commands for one host: the placeholders of a check's texts filled in with the devices of a finding. Pure."""

import re
from collections.abc import Callable, Iterable

from nodetune.api.device import Device
from nodetune.api.model import Finding, HostResult
from nodetune.audit.devices import ADDRESS, Names

SAFE = re.compile(r"[\w./:@+-]+")
"""The characters that a host may put into a command that a user pastes."""

MAX_NAMES = 32
"""Devices that are named where one command takes each of them."""

Of = Callable[[str, Device | None], str]
"""(a subject, its device) → the value of a placeholder; empty if it has none."""


def _index(subject: str, device: Device | None) -> str:
    found = re.fullmatch(r"GPU(\d+)", device.name if device else subject)
    return found[1] if found else ""


def _address(subject: str, device: Device | None) -> str:
    return device.address if device else subject if ADDRESS.fullmatch(subject) else ""


def _link(subject: str, device: Device | None) -> str:
    if device is None:
        return "" if "/" in subject or ADDRESS.fullmatch(subject) else subject
    return device.netdev or ("" if device.uuid or device.name.startswith(("GPU", "nvme", "mlx")) else device.name)


def _rdma(subject: str, device: Device | None) -> str:
    return device.name if device and device.netdev else subject.partition("/")[0] if "/" in subject[1:] else ""


def _path(subject: str, _device: Device | None) -> str:
    return subject if re.fullmatch(r"/[^\s:]*", subject) else ""


def _subject(subject: str, _device: Device | None) -> str:
    return subject


PLACEHOLDERS: dict[str, tuple[str, Of]] = {
    "INDEX": (r"\bINDEX\b", _index),
    "BDF": (r"\bBDF\b", _address),
    "ADDRESS": (r"\bADDRESS\b", _address),
    "LINK": (r"\bLINK\b", _link),
    "NETDEV": (r"\bNETDEV\b", _link),
    "DEVICE": (r"\bDEVICE\b", _rdma),
    "PLACE": (r"/?\bPLACE\b", _path),
    "PATH": (r"\bPATH\b", _path),
    "FILE": (r"(?<!--scheduler-diff )\bFILE\b", _path),
    "UNIT": (r"\bUNIT\b", _subject),
    "NAME": (r"(?<=disable --now )NAME\b|(?<=set-property )NAME\b", _subject),
    "nvmeX": (r"\bnvmeX\b", _subject),
    "mdX": (r"\bmdX\b", _subject),
}
"""Placeholder → the pattern that finds it in the texts of checks, and its value on a host."""


def filled(text: str, result: HostResult, found: Finding) -> str:
    """Return a text with the names of this host and its devices; where several have one place, they are listed below."""
    names, several = Names(result.devices), []
    if SAFE.fullmatch(result.host):
        text = re.sub(r"\bNODE\b", lambda _: result.host, text)
    for name, (pattern, of) in PLACEHOLDERS.items():
        if not re.search(pattern, text):
            continue
        values = list(dict.fromkeys(_safe(of(subject, names.device(subject)) for subject in found.subjects)))
        if len(values) == 1:
            text = re.sub(pattern, lambda _, value=values[0]: value, text)  # type: ignore[misc]
        elif values:
            text = text.replace(f"{name};{name};...", ";".join(values))
            several.append(f"{name}: {', '.join(values[:MAX_NAMES])}")
    return "\n".join((text, *several))


def _safe(values: Iterable[str]) -> Iterable[str]:
    return (value for value in values if SAFE.fullmatch(value) and not value.startswith("-"))
