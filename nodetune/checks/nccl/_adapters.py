"""NCCL_IB_HCA and UCX_NET_DEVICES, compared with the RDMA ports of this host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nodetune.checks.nccl._prefixes import is_name, missing
from nodetune.checks.shared.nccl_reading import NcclSelection, misshapen, takes_too_much
from nodetune.checks.shared.nccl_settings import Problems, Setting, effective, problems
from nodetune.checks.shared.nccl_table import About

Ports = Mapping[str, Any]
"""Port name such as mlx5_0/1 → the port, as in the fact rdma.ports."""


def wrong(settings: Sequence[Setting], ports: Ports) -> Problems:
    """Return selections that match the wrong adapters, or none."""

    def judge(setting: Setting, about: About) -> str:
        fault = _BY_TYPE.get(about.get("type", ""))
        return fault(setting["value"], ports) if fault else ""

    return problems(settings, judge)


def selected(settings: Sequence[Setting], ports: Ports) -> Ports:
    """Return the ports that NCCL_IB_HCA selects in a login session, all if it is not set."""
    setting = effective(settings, "NCCL_IB_HCA")
    return _chosen(NcclSelection(setting["value"]), ports) if setting else ports


def left_out(settings: Sequence[Setting], candidates: Ports, missed: Callable[[Ports, Ports], str]) -> Problems:
    """Return what `missed` says of (the ports that a line of NCCL_IB_HCA takes, those that it leaves out), for each such line."""

    def judge(setting: Setting, about: About) -> str:
        if about.get("type") != "hcas":
            return ""
        taken = _chosen(NcclSelection(setting["value"]), candidates)
        return missed(taken, {name: port for name, port in candidates.items() if name not in taken}) if taken else ""

    return problems(settings, judge)


def only_one_choice(setting: Setting, ports: Ports, gpus: int) -> bool:
    """Return whether NCCL_IB_HCA selects nothing, and all active ports are alike and as many as the GPUs: one for each."""
    active = [port for port in ports.values() if port.get("state") == "ACTIVE"]
    alike = len({(port.get("link_layer"), port.get("rate_gbps")) for port in active}) == 1
    selection = NcclSelection(setting["value"])
    nothing = setting["name"] == "NCCL_IB_HCA" and not selection.excludes and not _chosen(selection, ports)
    return nothing and alike and len(active) == gpus


def _ucx_fault(value: str, ports: Ports) -> str:
    odd = [token for token in value.split(",") if ":" in token and token.replace(":", "/") not in ports]
    return f"this host has no {', '.join(odd)}" if odd and ports else ""


def _hca_fault(value: str, ports: Ports) -> str:
    selection = NcclSelection(value)
    devices = sorted({name.partition("/")[0] for name in ports})
    return (
        misshapen(value)
        or _unmatched(selection, ports)
        or takes_too_much(selection, devices)
        or _mixture(_chosen(selection, ports), selection)
    )


_BY_TYPE = {"hcas": _hca_fault, "ucx_devices": _ucx_fault}


def _unmatched(selection: NcclSelection, ports: Ports) -> str:
    hit = {token: any(_matches(selection, token, name) for name in ports) for token in selection.tokens}
    unmatched = missing(selection, hit)
    return f"no RDMA port of this host matches {', '.join(unmatched)}" if unmatched else ""


def _chosen(selection: NcclSelection, ports: Ports) -> Ports:
    def named(port: str) -> bool:
        return any(_matches(selection, token, port) for token in selection.tokens)

    return {name: port for name, port in ports.items() if named(name) != selection.excludes}


def _matches(selection: NcclSelection, token: str, port: str) -> bool:
    device, _, port_number = port.partition("/")
    wanted = token.split(":")[1] if ":" in token else ""
    return selection.matches(token, device) and wanted in ("", port_number)


def _inactive(chosen: Ports, selection: NcclSelection) -> list[str]:
    """Return the chosen ports that are not active but should be.

    A prefix or an exclusion may leave ports without a cable in, which NCCL skips. A prefix must leave an active one.
    """
    found = sorted(name for name, port in chosen.items() if port.get("state") != "ACTIVE")
    if selection.excludes:
        return []
    tokens = [token for token in selection.tokens if is_name(selection, token) or len(found) == len(chosen)]
    return [name for name in found if any(_matches(selection, token, name) for token in tokens)]


def _mixture(chosen: Ports, selection: NcclSelection) -> str:
    """Return why these ports must not be used together."""
    if not chosen:
        return "leaves no RDMA port: NCCL falls back to TCP"
    inactive = _inactive(chosen, selection)
    if inactive:
        return f"{', '.join(inactive)} is not active: NCCL ignores it"
    active = {name: port for name, port in chosen.items() if port.get("state") == "ACTIVE"}
    return _two_networks(active) or _slow(active)


def _two_networks(active: Ports) -> str:
    layers = {port.get("link_layer") for port in active.values()}
    together = " and ".join(sorted(map(str, layers)))
    return f"selects {together} ports: they cannot reach each other" if len(layers) > 1 else ""


def _slow(active: Ports) -> str:
    fastest = max((port.get("rate_gbps") or 0 for port in active.values()), default=0)
    slow = sorted(name for name, port in active.items() if (port.get("rate_gbps") or fastest) * 2 < fastest)
    return f"selects slow ports: {', '.join(slow)} along with ports of {fastest:g} Gb/s" if slow else ""
