"""Twenty hosts, each with one planted state, in a history or in documents: what `nodetune status` must tell of each."""

from __future__ import annotations

from dataclasses import replace

from nodetune import __version__
from nodetune.api.conclusion import (
    APPLY,
    HAND,
    REPAIR,
    UNKNOWN,
    USER,
    WAIVED,
    Action,
    Conclusion,
    Examination,
    Examined,
    Judged,
    Next,
)
from nodetune.api.device import Device

DAY = 86400
NOW = 20_700 * DAY
HOSTILE = "gpu\x1b[31m\u202e<script>alert(1)</script>`|=cmd"
LONG = "x" * 10_000
GPU = Device("GPU3", "0000:61:00.0", serial="A", kind="gpu")
SPARE = replace(GPU, serial="B")

OF_SOURCES = {
    "reach": ("host-not-reached", "medium", HAND, Next("audit", hosts=("n01",))),
    "audit": ("swap-on", "medium", APPLY, Next("plan", ("-s", "swap-on"), ("n02",))),
    "verify": ("figure-below-target", "high", HAND, Next("verify", ("--only", "gemm"), ("n03",))),
    "find-slow": ("node-slow", "high", REPAIR, Next("audit", hosts=("n04",))),
    "late-ranks": ("rank-late", "medium", HAND, Next("audit", hosts=("n05",))),
    "ras": ("rank-missing", "high", HAND, Next("audit", hosts=("n06",))),
    "watch": ("gpu-idle", "low", USER, Next("watch", hosts=("n07",))),
    "trend": ("part-degrading", "medium", REPAIR, Next("history", hosts=("n08",))),
    "guard": ("gpu-lost", "critical", REPAIR, Next("explain", ("gpu-lost",))),
    "readmit": ("part-gone", "critical", REPAIR, Next(text="put it back")),
    "episodes": ("host-often-broken", "medium", REPAIR, Next("history", hosts=("n20",))),
}
"""Source → what it finds on its host: n01 … n10 and n20."""


def host_of(source):
    number = list(OF_SOURCES).index(source) + 1
    return f"n{20 if number > 10 else number:02}"


def concluded(source, host, at, fault="", **more):
    known = OF_SOURCES[source]
    hosts = host if isinstance(host, tuple) else (host,)
    given = {"who": known[2], "next": known[3], **more}
    return Conclusion(
        fault or known[0],
        source,
        hosts,
        given.pop("severity", known[1]),
        given.pop("statement", f"{fault or known[0]} is so"),
        at,
        **given,
    )


def looked(source, host, at, *judged, **unjudged):
    faults = judged or (OF_SOURCES[source][0],)
    return Examination(source, host, at, __version__, tuple(map(Judged, faults)), unjudged)


def planted(now=NOW):
    """Return sets of conclusions and examinations, the oldest first, and what was done."""
    first, last = now - 20 * DAY, now - DAY
    sets = []
    for source in OF_SOURCES:
        host = host_of(source)
        sets.append(
            Examined(
                (concluded(source, host, last),), (looked("audit", host, last, "other"), looked(source, host, last))
            )
        )
    audits = [looked("audit", f"n{number}", last, "swap-on", "gpu-ecc-off") for number in (14, 15, 16, 17, 18, 19)]
    sets += [
        Examined((concluded("audit", "n11", last, state=WAIVED, reason="until June"),), (looked("audit", "n11", last, "other"),)),
        Examined((concluded("audit", "n12", first, "gpu-lost", severity="critical", who=REPAIR),), (looked("audit", "n12", first, "gpu-lost"),)),
        # n13: never examined; it is in the inventory
        Examined((concluded("audit", "n14", first, "swap-on"),), (looked("audit", "n14", first, "swap-on"),)),
        Examined((concluded("audit", "n15", first, "gpu-row-remap-failed", device=GPU, severity="high"),)),
        Examined((), tuple(audits)),
        Examined((), (replace(looked("audit", "n15", last, "gpu-row-remap-failed"), devices=(SPARE,)),)),
        Examined((concluded("audit", "n16", last, "gpu-ecc-off", state=UNKNOWN, reason="needs root (--become)"),), (looked("audit", "n16", last, "swap-on", **{"gpu-ecc-off": "needs root (--become)"}),)),
        Examined((concluded("find-slow", ("n17", "n18"), last, "path-slow", device=Device("n17-n18", kind="link")),)),
        Examined((concluded("audit", "n19", last, "gpu-lost", severity="critical", who=REPAIR, device=GPU), concluded("audit", "n19", last, "gpu-recovery-needed", severity="critical", who=REPAIR, explained_by="gpu-lost"))),
        Examined((concluded("find-slow", (), last, "fleet-slow", severity="medium", next=Next("verify", ("--find-slow",))),)),
        Examined((concluded("audit", HOSTILE, last, statement=f"{HOSTILE}{LONG}"),), (looked("audit", HOSTILE, last, "swap-on"),)),
    ]  # fmt: skip
    done = [
        Action("drained", "n09", now - 3 * DAY, "slurm", "gpu lost"),
        Action("drained", "n10", now - 5 * DAY),
        Action("resumed", "n10", now - 4 * DAY),
        Action("rebooted", "n09", now - 40 * DAY),
    ]
    return sets, done


HOSTS = [*(f"n{number:02}" for number in range(1, 21)), HOSTILE]
