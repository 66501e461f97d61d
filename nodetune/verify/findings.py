"""What is wrong although a figure may be right: a collective over the wrong path, a GPU that is held back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nodetune.foundation import text
from nodetune.verify.machine import Machine
from nodetune.verify.model import FAILED, SHORT, Figure, Unmeasured, VerifyFinding

NOTE = "note"
WRONG = ("came back wrong", "computed wrongly")
"""What the payload says of data that is not what was sent (nodetune/measurements/gpus.py), or not what should have come out."""

OUT_OF_SERVICE = {
    "memory": "take this host out of service; its EDAC counters and dmesg say which module it is",
    "nccl": "take the GPU out of service that the message names, and those it works with until gpu_memory, gpu_p2p and gpu_load"
    " have told which of them it is",
    "gpu_p2p": "take both out of service until gpu_memory and gpu_copy of each have told which of them it is",
}
"""Else it is the GPU that the message names."""

REDUCES_IN_SWITCH = ("H100", "H200", "H20", "GH200", "B200", "B300", "GB200", "GB300")
"""GPU models whose NVSwitch can reduce (NVLS): Hopper and later, in their SXM forms."""

NVLS_METRICS = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives that NCCL can run over NVLS."""

MANY_RETRANSMITS = 0.005
"""As the check tcp-retransmits-high has it."""

SERIOUS_REASONS = {
    "hw_thermal_slowdown": "too hot",
    "sw_thermal_slowdown": "too hot",
    "hw_power_brake_slowdown": "the server asks it to save power",
    "hw_slowdown": "hardware slowdown (heat or power)",
}
"""Clock event reasons that a sound GPU never shows; sw_power_cap under full load is as it should be."""


def wrong_data(missing: Iterable[Unmeasured]) -> list[VerifyFinding]:
    """Return the findings for data that came back wrong: the most serious fault, and no figure shows it."""
    return [
        VerifyFinding(
            each.host,
            SHORT,
            f"{each.measurement}: {each.reason}",
            (each.subject,) if each.subject else (),
            OUT_OF_SERVICE.get(each.measurement, "take this GPU out of service"),
        )
        for each in missing
        if each.status == FAILED and any(words in each.reason for words in WRONG)
    ]


def findings(
    measured: Iterable[Figure], machines: Mapping[str, Machine], env: Mapping[str, str]
) -> list[VerifyFinding]:
    """Return the findings of a verify.

    `env`: what the caller set for NCCL. What it switched off on purpose is a note, not a fault.
    """
    found: dict[tuple[str, str], VerifyFinding] = {}
    for figure in measured:
        rule = {"nccl": _nccl, "gpu_load": _load, "tcp": _tcp}.get(figure.measurement)
        for each in rule(figure, machines[figure.host], env) if rule else ():
            same = found.get((each.host, each.title))
            subjects = dict.fromkeys([*(same.subjects if same else ()), *each.subjects])
            found[each.host, each.title] = VerifyFinding(each.host, each.status, each.title, tuple(subjects), each.next)
    return list(found.values())


def _nccl(figure: Figure, machine: Machine, env: Mapping[str, str]) -> Iterator[VerifyFinding]:
    about = figure.about
    given = {**env, **_mapping(about.get("settings"))}
    ways, what = _words(about.get("transport")), (f"{figure.metric} over {figure.subject}",)
    alone = about.get("nodes", 1) == 1
    wrong = [way for way in ("SHM", "NET") if any(each.upper().startswith(way) for each in ways)]
    if alone and wrong and machine.fabric == "nvswitch":
        meant = given.get("NCCL_P2P_DISABLE", "0") != "0"
        yield VerifyFinding(
            figure.host,
            NOTE if meant else SHORT,
            f"NCCL went over {' and '.join(wrong)} between GPUs that NVLink joins",
            what,
            "NCCL_P2P_DISABLE is set for this run"
            if meant
            else "nvidia-smi topo -p2p n; nodetune audit -s nvlink-p2p-unavailable",
        )
    if not alone and machine.hcas and any("SOCKET" in each.upper() for each in ways):
        meant = given.get("NCCL_IB_DISABLE", "0") != "0" or given.get("NCCL_NET", "").lower() == "socket"
        yield VerifyFinding(
            figure.host,
            NOTE if meant else SHORT,
            f"NCCL went over TCP sockets although there are HCAs ({text.names(list(machine.hcas))})",
            what,
            "this run was told to" if meant else "nodetune audit -s nccl-hca-selection-wrong -s rdma-port-not-active",
        )
    yield from _without_nvls(figure, machine, given)


def _without_nvls(figure: Figure, machine: Machine, environment: Mapping[str, str]) -> Iterator[VerifyFinding]:
    gpus = figure.about.get("gpus", machine.gpus)
    could = machine.fabric == "nvswitch" and any(name in machine.model.split() for name in REDUCES_IN_SWITCH)
    whole = isinstance(gpus, int) and gpus >= 4 and figure.about.get("nodes", 1) == 1
    if not (could and whole and figure.metric in NVLS_METRICS and figure.about.get("nvls") is False):
        return
    switched_off = environment.get("NCCL_NVLS_ENABLE") == "0"
    yield VerifyFinding(
        figure.host,
        NOTE if switched_off or figure.metric != "all_reduce" else SHORT,
        "NVLS is off: NCCL reduced in the GPUs, not in the switch",
        (figure.metric,),
        "NCCL_NVLS_ENABLE=0 is set, and figures are judged by what is right without NVLS"
        if switched_off
        else "see that Fabric Manager runs; NCCL_DEBUG=INFO says why NVLS was not used",
    )


def _load(figure: Figure, _machine: Machine, _env: Mapping[str, str]) -> Iterator[VerifyFinding]:
    for reason in _words(figure.about.get("reasons")):
        if reason in SERIOUS_REASONS:
            yield VerifyFinding(
                figure.host,
                SHORT,
                f"held back under load: {SERIOUS_REASONS[reason]} ({reason})",
                (figure.subject,),
                "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
            )


def _tcp(figure: Figure, _machine: Machine, _env: Mapping[str, str]) -> Iterator[VerifyFinding]:
    """Name a pair that lost segments: a note, because no source says how many are too many."""
    share = figure.about.get("retransmitted")
    if isinstance(share, int | float) and share > MANY_RETRANSMITS:
        yield VerifyFinding(
            figure.host,
            NOTE,
            f"TCP sent more than {MANY_RETRANSMITS:.1%} of its segments again",
            (figure.subject,),
            "nodetune audit -s tcp-retransmits-high -s receive-overruns; `drops` in the JSON says what the interface dropped",
        )


def _words(found: Any) -> Sequence[str]:
    """Split `P2P+NET/IB`, a list of texts, or the keys of a table (such as reason → share of the time)."""
    if isinstance(found, str):
        return found.split("+")
    if isinstance(found, Mapping):
        return [str(key) for key, share in found.items() if share]
    return [str(each) for each in found] if isinstance(found, list) else ()


def _mapping(found: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, Mapping) else {}
