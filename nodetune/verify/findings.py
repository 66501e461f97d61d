"""Find faults that figures do not show: a collective over the wrong path, a throttled GPU. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nodetune.facts.machine import Machine
from nodetune.foundation import text
from nodetune.verify import reach
from nodetune.verify.model import FAILED, NOTE, SHORT, Figure, Unmeasured, VerifyFinding

WRONG = ("came back wrong", "computed wrongly")
"""Marks of wrong data in the payload's reasons: after a transfer (nodetune/measurements/cuda/gpus.py) or a computation."""

OUT_OF_SERVICE = {
    "memory": "take this host out of service; its EDAC counters and dmesg name the module",
    "nccl": "take the GPU in the message and its partners out of service until gpu_memory, gpu_p2p and gpu_load show which one is faulty",
    "gpu_p2p": "take both out of service until gpu_memory and gpu_copy of each show which one is faulty",
}
"""For other measurements, the message names the faulty GPU."""

REDUCES_IN_SWITCH = ("H100", "H200", "H20", "GH200", "B200", "B300", "GB200", "GB300", "VR200")
"""GPU models whose NVSwitch can reduce (NVLS): Hopper and later, in their SXM forms."""

NVLS_METRICS = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives that NCCL can run over NVLS."""

MANY_RETRANSMITS = 0.005
"""The limit of the check tcp-retransmits-high."""

SERIOUS_REASONS = {
    "hw_thermal_slowdown": "too hot",
    "sw_thermal_slowdown": "too hot",
    "hw_power_brake_slowdown": "the server requests power saving",
    "hw_slowdown": "hardware slowdown (heat or power)",
}
"""Clock event reasons that a healthy GPU never has; sw_power_cap under full load is normal."""


BY_MEASUREMENT = {
    "nccl": ("collective-over-wrong-path", "nvls-not-used"),
    "gpu_load": ("gpu-throttled",),
    "tcp": ("segments-retransmitted",),
    reach.MEASUREMENT: reach.FAULTS,
}
"""Measurement → the faults that its figures also show."""


def wrong_data(missing: Iterable[Unmeasured]) -> list[VerifyFinding]:
    """Return the findings for wrong data: the most serious fault, which no figure shows."""
    return [
        VerifyFinding(
            "data-wrong",
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

    `env`: variables that the caller set for NCCL. What they disable on purpose is a note, not a fault.
    """
    found: dict[tuple[str, str], VerifyFinding] = {}
    every = list(measured)
    for figure in every:
        rule = {"nccl": _nccl, "gpu_load": _load, "tcp": _tcp}.get(figure.measurement)
        for each in rule(figure, machines[figure.host], env) if rule else ():
            same = found.get((each.host, each.title))
            subjects = dict.fromkeys([*(same.subjects if same else ()), *each.subjects])
            found[each.host, each.title] = replace(each, subjects=tuple(subjects))
    return [*found.values(), *reach.findings(every)]


def _nccl(figure: Figure, machine: Machine, env: Mapping[str, str]) -> Iterator[VerifyFinding]:
    about = figure.about
    given = {**env, **_mapping(about.get("settings"))}
    ways, what = _words(about.get("transport")), (f"{figure.metric} over {figure.subject}",)
    alone = about.get("nodes", 1) == 1
    wrong = [way for way in ("SHM", "NET") if any(each.upper().startswith(way) for each in ways)]
    if alone and wrong and machine.fabric == "nvswitch":
        meant = given.get("NCCL_P2P_DISABLE", "0") != "0"
        yield VerifyFinding(
            "collective-over-wrong-path",
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
            "collective-over-wrong-path",
            figure.host,
            NOTE if meant else SHORT,
            f"NCCL went over TCP sockets although there are HCAs ({text.names(list(machine.hcas))})",
            what,
            "this run sets NCCL_IB_DISABLE or NCCL_NET"
            if meant
            else "nodetune audit -s nccl-hca-selection-wrong -s rdma-port-not-active",
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
        "nvls-not-used",
        figure.host,
        NOTE if switched_off or figure.metric != "all_reduce" else SHORT,
        "NVLS is off: NCCL reduced in the GPUs, not in the switch",
        (figure.metric,),
        "NCCL_NVLS_ENABLE=0 is set; figures are compared with those without NVLS"
        if switched_off
        else "check that Fabric Manager is running; NCCL_DEBUG=INFO says why NVLS was not used",
    )


def _load(figure: Figure, _machine: Machine, _env: Mapping[str, str]) -> Iterator[VerifyFinding]:
    for reason in _words(figure.about.get("reasons")):
        if reason in SERIOUS_REASONS:
            yield VerifyFinding(
                "gpu-throttled",
                figure.host,
                SHORT,
                f"throttled under load: {SERIOUS_REASONS[reason]} ({reason})",
                (figure.subject,),
                "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
            )


def _tcp(figure: Figure, _machine: Machine, _env: Mapping[str, str]) -> Iterator[VerifyFinding]:
    """Name a pair that lost segments: a note, because no source has a limit."""
    share = figure.about.get("retransmitted")
    if isinstance(share, int | float) and share > MANY_RETRANSMITS:
        yield VerifyFinding(
            "segments-retransmitted",
            figure.host,
            NOTE,
            f"TCP retransmitted more than {MANY_RETRANSMITS:.1%} of its segments",
            (figure.subject,),
            "nodetune audit -s tcp-retransmits-high -s receive-overruns; `drops` in the JSON has the interface's drops",
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
