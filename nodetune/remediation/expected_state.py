"""The state of hosts after a plan, for the exported test (templates/test_wanted.py.j2): it uses testinfra, not the probe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.remediation.host_view import FILES

Change = Mapping[str, Any]
Seen = tuple[str, str, dict[str, Any]]
"""The function of the test that sees it, what it is, and what the function takes."""

RIVALS = {
    "nodiscard": ["discard", "discard=sync"],
    "async": ["sync"],
    "barrier": ["nobarrier", "barrier=0"],
}
"""Mount options that no table shows: they hold where none of these does."""


def wanted(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """Return what each change leaves on the host; of several changes of one thing, the last."""
    found = {(see, what): given for see, what, given in map(_seen, changes) if see}
    return [{"see": see, "what": what, "with": given} for (see, what), given in found.items()]


def _seen(change: Change) -> Seen:
    kind = str(change["change"])
    if kind == "run":
        return "", "", {}
    if kind in FILES:
        return _file(change)
    if kind == "edit":
        return _edit(str(change["how"]), str(change["path"]), change["with"])
    return _running(kind, change)


def _file(change: Change) -> Seen:
    path = str(change["path"])
    if change["content"] is None:
        return "no_file", path, {"path": path}
    texts = [change["content"], *change.get("or", ())]
    return "file", path, {"path": path, "texts": texts, "mode": change.get("mode", "0644")}


def _edit(how: str, path: str, edit: Mapping[str, Any]) -> Seen:
    if how == "json":
        return "keys", f"{path}: {', '.join(edit['keys'])}", {"path": path, "wanted": edit["keys"]}
    if how == "assignments":
        return "assignments", f"{path}: {', '.join(edit['values'])}", {"path": path, "values": edit["values"]}
    if how == "without_lines":
        return "without", path, {"path": path, "lines": edit["lines"]}
    if how == "fstab_no_swap":
        return "no_swap_at_boot", path, {}
    if how == "fstab_option":
        point, option = edit["mount_point"], edit["option"]
        return "fstab", f"{point} {option}", {"point": point, "option": option, "rivals": RIVALS.get(option, [])}
    return "nothing", f"{path} ({how})", {}


def _running(kind: str, change: Change) -> Seen:
    """Return what a change of a running host leaves."""
    if kind == "value":
        return "value", str(change["path"]), {"path": change["path"], "text": str(change["value"])}
    if kind == "unit":
        name, state = str(change["unit"]), {key: change.get(key) for key in ("enabled", "active")}
        return "unit", name, {"name": name, **state}
    if kind == "mount":
        point, option = change["mount_point"], change["option"]
        return "mount", f"{point} {option}", {"point": point, "option": option, "rivals": RIVALS.get(option, [])}
    if kind == "module":
        return "module", str(change["name"]), {"name": change["name"]}
    if kind == "swap":
        return "no_swap", "", {}
    if (kind, change.get("setting")) == ("link", "mtu"):
        path = f"/sys/class/net/{change['link']}/mtu"
        return "value", path, {"path": path, "text": str(change["value"])}
    about = " ".join(str(change[key]) for key in ("setting", "link", "name", "path") if key in change)
    return "nothing", f"{kind} {about}".strip(), {}
