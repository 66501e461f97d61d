"""NCCL_SOCKET_IFNAME and similar settings, compared with the links of this host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.checks.nccl._prefixes import missing
from nodetune.checks.shared.nccl_reading import NcclSelection, misshapen, takes_too_much
from nodetune.checks.shared.nccl_settings import Problems, Setting, effective, problems
from nodetune.checks.shared.nccl_table import About

Links = Mapping[str, Any]
"""Link name → the link, as in the fact net.links."""


def wrong(settings: Sequence[Setting], links: Links) -> Problems:
    """Return selections that match the wrong interfaces, or none."""
    own = {name: link for name, link in links.items() if "@" not in name}
    names_links = _socket_net(settings)

    def judge(setting: Setting, about: About) -> str:
        out_of_band = setting["name"] == "NCCL_OOB_NET_IFNAME" and not names_links
        if about.get("type") != "interfaces" or out_of_band:
            return ""
        return misshapen(setting["value"]) or _fault(NcclSelection(setting["value"]), own)

    return problems(settings, judge)


def _socket_net(settings: Sequence[Setting]) -> bool:
    """Return whether out-of-band names are link names, which they are only with NCCL_NET=Socket."""
    chosen = effective(settings, "NCCL_NET")
    return chosen is not None and chosen["value"].lower() == "socket"


def _fault(selection: NcclSelection, links: Links) -> str:
    if selection.excludes:
        return _not_excluded(selection.selected(links))
    return _unmatched(selection, links) or takes_too_much(selection, links) or _down(selection, links)


def _not_excluded(names: Sequence[str]) -> str:
    missing = [name for name in names if name == "lo" or name.startswith(("docker", "virbr"))]
    return f"does not exclude {', '.join(missing)}: a value replaces NCCL's default exclusions" if missing else ""


def _unmatched(selection: NcclSelection, links: Links) -> str:
    hit = {token: any(selection.matches(token, name) for name in links) for token in selection.tokens}
    unmatched = missing(selection, hit)
    if not unmatched:
        return ""
    end = "" if selection.selected(links) else ": NCCL fails to start"
    return f"no interface of this host matches {', '.join(unmatched)}{end}"


def _down(selection: NcclSelection, links: Links) -> str:
    chosen = selection.selected(links)
    down = [name for name in chosen if links[name].get("up") is False]
    return f"{', '.join(down)} is down" if down and len(down) == len(chosen) else ""
