"""NCCL_IB_HCA and UCX_NET_DEVICES, held against the RDMA ports of this host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.nccl.judging import problems
from nodetune.nccl.selections import Selection, misshapen, takes_too_much
from nodetune.nccl.settings import Problems, Setting
from nodetune.nccl.table import About

Ports = Mapping[str, Any]
"""Name such as mlx5_0/1 → the port, as in the fact rdma.ports."""


def wrong(settings: Sequence[Setting], ports: Ports) -> Problems:
    """Choices that catch the wrong adapters, or none."""

    def judge(setting: Setting, about: About) -> str:
        fault = _BY_TYPE.get(about.get("type", ""))
        return fault(setting["value"], ports) if fault else ""

    return problems(settings, judge)


def _ucx_fault(value: str, ports: Ports) -> str:
    odd = [token for token in value.split(",") if ":" in token and token.replace(":", "/") not in ports]
    return f"this host has no {', '.join(odd)}" if odd and ports else ""


def _hca_fault(value: str, ports: Ports) -> str:
    selection = Selection(value)
    devices = sorted({name.partition("/")[0] for name in ports})
    return (
        misshapen(value)
        or _strange(selection, ports)
        or takes_too_much(selection, devices)
        or _mixture(_chosen(selection, ports), excludes=selection.excludes)
    )


_BY_TYPE = {"hcas": _hca_fault, "ucx_devices": _ucx_fault}


def _strange(selection: Selection, ports: Ports) -> str:
    strange = [token for token in selection.tokens if not any(_meets(selection, token, name) for name in ports)]
    return f"no RDMA port of this host matches {', '.join(strange)}" if strange else ""


def _chosen(selection: Selection, ports: Ports) -> Ports:
    def named(port: str) -> bool:
        return any(_meets(selection, token, port) for token in selection.tokens)

    return {name: port for name, port in ports.items() if named(name) != selection.excludes}


def _meets(selection: Selection, token: str, port: str) -> bool:
    device, _, port_number = port.partition("/")
    wanted = token.split(":")[1] if ":" in token else ""
    return selection.matches(token, device) and wanted in ("", port_number)


def _mixture(chosen: Ports, *, excludes: bool) -> str:
    """What is wrong with these ports being used together."""
    if not chosen:
        return "leaves no RDMA port over: NCCL falls back to TCP"
    active = {name: port for name, port in chosen.items() if port.get("state") == "ACTIVE"}
    dead = sorted(chosen.keys() - active.keys())
    if dead and not excludes:
        return f"{', '.join(dead)} is not active: NCCL leaves it out"
    return _two_networks(active) or _slow(active)


def _two_networks(active: Ports) -> str:
    layers = {port.get("link_layer") for port in active.values()}
    together = " and ".join(sorted(map(str, layers)))
    return f"takes {together} ports together: they cannot reach each other" if len(layers) > 1 else ""


def _slow(active: Ports) -> str:
    fastest = max((port.get("rate_gbps") or 0 for port in active.values()), default=0)
    slow = sorted(name for name, port in active.items() if (port.get("rate_gbps") or fastest) * 2 < fastest)
    return f"takes slow ports in: {', '.join(slow)} beside ports of {fastest:g} Gb/s" if slow else ""
