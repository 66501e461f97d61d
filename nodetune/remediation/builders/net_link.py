"""MTU, rings, channels and coalescing of network links: set now, kept by a .link file for each link (the MTU: `_mtu`).

Of all .link files the first that matches a link holds alone. Ours come first, so each repeats what the file says that
has held until now (systemd's own default names the links): only then the link keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._mtu import owners_change
from nodetune.remediation.builders._own import kept, named, plain_line, render, text_of, whole_file
from nodetune.remediation.host_view import HostView, UnfixableError

CONFIRM_SECONDS = 120
"""Seconds that a changed link waits for the controller's confirmation before it reverts on its own."""

NEEDS = (
    "net.links",
    "net.channels",
    "net.local_cpus",
    "net.default_interface",
    "net.addresses",
    "net.subnets",
    "own.links",
)

LOCAL = "local"
"""As many queues as CPUs next to the card, as far as the card allows and more would not help."""
MAX_QUEUES = 16
KEYS = {
    "rings": ("RxBufferSize", "TxBufferSize"),
    "adaptive-rx": ("UseAdaptiveRxCoalesce",),
    "mtu": ("MTUBytes",),
    "channels": ("CombinedChannels",),
}
SYSTEMDS_DEFAULT = [
    [
        "Link",
        [
            ["NamePolicy", "keep kernel database onboard slot path"],
            ["AlternativeNamesPolicy", "database onboard slot path"],
            ["MACAddressPolicy", "persistent"],
        ],
    ]
]
"""99-default.link of systemd 252, for links whose file udev does not report."""

OURS = "00-nodetune-"
Lines = list[list[Any]]


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    wanted: dict[str, dict[str, str]] = {}
    owners: list[dict[str, Any]] = []
    for fix in fixes:
        if fix.target not in KEYS:
            raise UnfixableError(f"the link setting {fix.target} is not one of {', '.join(KEYS)}")
        for link in fix.subjects:
            given = _queues(link, host) if (fix.target, fix.value) == ("channels", LOCAL) else fix.value
            value = "yes" if given is True else text_of(given)
            change = {"change": "link", "link": named(link, "link"), "setting": fix.target, "value": given}
            made.append({**change, "confirm_seconds": CONFIRM_SECONDS, "checks": host.checks(fix)})
            if fix.target == "mtu":
                made[-1]["peers"] = {}  # an apply fills them in
                owned = owners_change(link, named(value, "MTU", r"\d{3,5}"), fix.subjects, host)
                if owned:
                    owners.append({**owned, "after": f"{link} mtu", "checks": host.checks(fix)})
                    continue
            wanted.setdefault(link, {}).update(dict.fromkeys(KEYS[fix.target], value))
    files = [_file(link, settings, host) for link, settings in wanted.items()]
    return [
        *(each for each in files if "after" not in each),
        *made,
        *(each for each in files if "after" in each),
        *owners,
    ]


def _queues(link: str, host: HostView) -> int:
    """Return how many queues serve a link from the CPUs next to it."""
    most, cpus = (host.get("net.channels") or {}).get(link), (host.get("net.local_cpus") or {}).get(link)
    if not most or not cpus:
        raise UnfixableError(f"{link}: its queues, or the CPUs near it, are unknown")
    if not most["combined_max"]:
        raise UnfixableError(f"{link} has no combined queues: set them manually (ethtool -l {link}, ethtool -L {link})")
    return min(int(most["combined_max"]), int(cpus), MAX_QUEUES)


def _file(link: str, settings: Mapping[str, str], host: HostView) -> dict[str, Any]:
    """Return the .link file: what matches the link, what applied until now, and our settings last in [Link]."""
    path = f"/etc/systemd/network/{OURS}{link}.link"
    ours = kept(host, path, _allowed)
    match, sections = ours.get("match") or _match(link, host), ours.get("sections") or _sections(link, host)
    whole = {"match": match, "sections": sections, "set": {**ours.get("set", {}), **settings}}
    after = {"after": f"{link} mtu"} if "MTUBytes" in settings else {}
    return {**whole_file(path, render("link.j2", whole)), **after}


def _match(link: str, host: HostView) -> dict[str, str]:
    """Return what identifies the link at each boot: its slot, and if several links share that, its own address."""
    known = (host.readable("own.links") or {}).get(link) or {}
    path = known.get("id_path") or _slot(link, host)
    alike = [each for each in (host.readable("own.links") or {}).values() if (each or {}).get("id_path") == path]
    match = {"Path": named(path, "path of a device")}
    if len(alike) > 1 and known.get("mac_address"):
        match["PermanentMACAddress"] = named(known["mac_address"], "hardware address")
    return match


def _slot(link: str, host: HostView) -> str:
    """Return udev's name of the PCI slot of a link."""
    bdf = (host.get("net.links") or {}).get(link, {}).get("bdf")
    if not bdf:
        raise UnfixableError(f"{link} is not a PCI device: set it manually, and persist it in your own .link file")
    return f"pci-{bdf}"


def _sections(link: str, host: HostView) -> Lines:
    """Return the lines of the file that applied until now: [[section, [[key, value], …]], …]."""
    known = (host.readable("own.links") or {}).get(link) or {}
    file = known.get("file") or ""
    if not file or OURS in file:
        return SYSTEMDS_DEFAULT
    if not file.endswith("/99-default.link"):
        host.note(f"{file} applies to {link}: its lines are repeated in {OURS}{link}.link, which then hides it.")
    return _lines(known["sections"])


def _allowed(keys: tuple[str, ...], value: Any) -> bool:
    if keys == ("sections",):
        return _are_lines(value)
    if keys[:1] == ("match",):
        return keys[1:] in (("Path",), ("PermanentMACAddress",)) and plain_line(value, r"[\w.:@+-]+")
    known = {key for names in KEYS.values() for key in names}
    return keys[:1] == ("set",) and (value == {} or (keys[1] in known and plain_line(value, r"\w+")))


def _are_lines(value: Any) -> bool:
    try:
        return bool(_lines(value) == value)
    except (UnfixableError, TypeError, ValueError):
        return False


def _lines(sections: Any) -> Lines:
    """Return the sections with their lines. Raise UnfixableError if they say more than a .link file does."""
    return [[_section(name), [[_word(key), text_of(value)] for key, value in lines]] for name, lines in sections]


def _section(name: str) -> str:
    if name == "Match":
        raise UnfixableError("the .link file of the host has a second section [Match]: set it manually")
    return _word(name)


def _word(text: str) -> str:
    return named(str(text), "word of a .link file", r"[\w-]+")
