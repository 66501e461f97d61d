"""Options of NFS mounts: written into fstab or a map of the automounter, whichever mounts them.

Nothing is mounted again: a mount in use cannot be. So the options hold from the next boot on. The first mount from a server
decides for all of them how many connections there are: such an option is set for every mount from that server. Options that
turn caches off belong to one mount: they are removed there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import named, text_of
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = ("host.kernel", "mounts.configured", "mounts.nfs", "mounts.points")

FIRST_KERNEL = {"nconnect": (5, 3)}
"""The kernel version of an option: an older kernel refuses the whole mount. Backports are left to the user."""

CACHES = "caches"
"""The target of a fix that removes what turns caches off."""

CACHING_OFF = (
    "noac",
    "sync",
    "lookupcache=none",
    *(f"{name}=0" for name in ("actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax")),
)

Place = Mapping[str, Any]


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for fix in fixes:
        if fix.target == CACHES:
            made += [{**edit, "checks": host.checks(fix)} for edit in _with_caches(fix.subjects, host)]
            continue
        name = named(fix.target, "mount option", r"\w+")
        option = name + "=" + named(text_of(fix.value), "value of a mount option", r"[\w.-]+")
        _require_kernel(name, host)
        found = [
            edit_of(place, known, option, _rivals(known, name, option)) for place, known in _places(fix.subjects, host)
        ]
        made += [{**edit, "checks": host.checks(fix)} for edit in found if edit not in made]
    maps = any(edit["how"] == "automount_option" for edit in made)
    return [*made, {"change": "run", "run": "daemon-reload"}, *([{"change": "run", "run": AUTOFS}] if maps else [])]


AUTOFS = "reload autofs.service"


def _require_kernel(name: str, host: HostView) -> None:
    release = str(host["host.kernel"])
    found = re.match(r"(\d+)\.(\d+)", release)
    if name in FIRST_KERNEL and (not found or tuple(map(int, found.groups())) < FIRST_KERNEL[name]):
        wanted = ".".join(map(str, FIRST_KERNEL[name]))
        raise UnfixableError(
            f"kernel {release}: {name} came with Linux {wanted}, and a kernel without it refuses the mount"
        )


def _places(subjects: Sequence[str], host: HostView) -> Iterator[tuple[str, Place]]:
    """Yield each mount over TCP from the servers of the subjects, with the place of its options.

    Raise UnfixableError if no place is known.
    """
    points, configured = host["mounts.points"], host["mounts.configured"]
    servers = {_server(points[place]) for place in subjects if place in points}
    over_tcp = [place for place, mount in host["mounts.nfs"].items() if str(mount["protocol"]).startswith("tcp")]
    alike = [place for place in over_tcp if place in points and _server(points[place]) in servers]
    missing = [place for place in alike if place not in configured]
    if not alike or len(missing) == len(alike):
        raise UnfixableError(
            f"neither /etc/fstab nor a map of the automounter mounts {', '.join(subjects)}: set the option where it is "
            "mounted (a systemd mount unit, a program map, a script), unmount all mounts from that server, mount again"
        )
    if missing:
        host.note(
            f"The source of the mount {', '.join(missing)} is unknown: give it the same option, or it may decide for all."
        )
    yield from ((place, configured[place]) for place in alike if place in configured)


def _with_caches(subjects: Sequence[str], host: HostView) -> Iterator[dict[str, Any]]:
    """Yield the edit of each mount whose configured options turn caches off. Raise UnfixableError if none do."""
    configured = host["mounts.configured"]
    off = {
        place: [each for each in configured[place]["options"] if each in CACHING_OFF]
        for place in subjects
        if place in configured
    }
    unknown = [place for place in subjects if not off.get(place)]
    if len(unknown) == len(subjects):
        raise UnfixableError(
            f"neither /etc/fstab nor a map of the automounter turns caches off for {', '.join(subjects)}: remove the options "
            f"({', '.join(CACHING_OFF[:4])} …) where it is mounted (a systemd mount unit, a program map, a script)"
        )
    if unknown:
        host.note(
            f"The source of the mount {', '.join(unknown)} is unknown: remove {', '.join(CACHING_OFF[:4])} there."
        )
    for place in filter(off.get, subjects):
        yield edit_of(place, configured[place], "async", off[place])


def _server(point: Place) -> str:
    return str(point["source"]).rpartition(":")[0]


def _rivals(known: Place, name: str, option: str) -> list[str]:
    return [each for each in known["options"] if each.partition("=")[0] == name and each != option]


def edit_of(place: str, known: Place, option: str, remove: list[str]) -> dict[str, Any]:
    """Return the edit that sets an option of a mount where it is configured, and removes others."""
    if known["key"] is None:
        given = {"mount_point": place, "option": option, "remove": remove}
        return {"change": "edit", "path": "/etc/fstab", "how": "fstab_option", "with": given}
    given = {"key": known["key"], "option": option, "remove": remove}
    path = named(str(known["file"]), "automounter map", r"/etc/[\w./+-]+")
    if ".." in path:
        raise UnfixableError(f"{path!r} is not an automounter map that can be written safely")
    return {"change": "edit", "path": path, "how": "automount_option", "with": given}
