"""NCCL_SOCKET_IFNAME and its like, held against the links of this host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.nccl.judging import problems
from nodetune.nccl.precedence import effective
from nodetune.nccl.selections import Selection, misshapen, takes_too_much
from nodetune.nccl.settings import Problems, Setting
from nodetune.nccl.table import About

Links = Mapping[str, Any]
"""Name → the link, as in the fact net.links."""


def wrong(settings: Sequence[Setting], links: Links) -> Problems:
    """Choices that catch the wrong interfaces, or none."""
    own = {name: link for name, link in links.items() if "@" not in name}
    names_links = _socket_net(settings)

    def judge(setting: Setting, about: About) -> str:
        elsewhere = setting["name"] == "NCCL_OOB_NET_IFNAME" and not names_links
        if about.get("type") != "interfaces" or elsewhere:
            return ""
        return misshapen(setting["value"]) or _fault(Selection(setting["value"]), own)

    return problems(settings, judge)


def _socket_net(settings: Sequence[Setting]) -> bool:
    """Whether out-of-band names are those of links: only then is NCCL_NET=Socket."""
    chosen = effective(settings, "NCCL_NET")
    return chosen is not None and chosen["value"].lower() == "socket"


def _fault(selection: Selection, links: Links) -> str:
    if selection.excludes:
        return _left_in(selection.selected(links))
    return _strange(selection, links) or takes_too_much(selection, links) or _down(selection, links)


def _left_in(names: Sequence[str]) -> str:
    left = [name for name in names if name == "lo" or name.startswith(("docker", "virbr"))]
    return f"leaves {', '.join(left)} in: NCCL avoids them only where nothing is set; add them" if left else ""


def _strange(selection: Selection, links: Links) -> str:
    strange = [token for token in selection.tokens if not any(selection.matches(token, name) for name in links)]
    if not strange:
        return ""
    end = "" if selection.selected(links) else ": NCCL fails to start"
    return f"no interface of this host matches {', '.join(strange)}{end}"


def _down(selection: Selection, links: Links) -> str:
    chosen = selection.selected(links)
    down = [name for name in chosen if links[name].get("up") is False]
    return f"{', '.join(down)} is down" if down and len(down) == len(chosen) else ""
