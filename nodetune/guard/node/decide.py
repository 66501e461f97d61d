"""Findings and a job → whether the job runs. Pure.

A finding about GPUs counts if the job holds one of them; otherwise it is reported as a peer's. A fact that could not be
read is neither a fault of the node nor a pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune.api.device import Device
from nodetune.api.model import Absent, Each, Finding, HostFacts, Unread, Value
from nodetune.audit.devices import named
from nodetune.guard.node import hardware, log
from nodetune.guard.node.invocation import MAX_GPUS, Job

GPU_SUBJECT = re.compile(r"GPU\d+|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


@dataclass(frozen=True)
class Decision:
    """`verdict` is pass, fail or inconclusive; `reason` is what Slurm shows for a fail, or why the guard cannot judge.

    `healthy` are the GPUs that passed everything, as Slurm counts them: the job's, and the others where nothing is wrong.
    `devices` are those that `blamed` names.
    """

    verdict: str
    reason: str = ""
    blamed: tuple[Finding, ...] = ()
    unknown: tuple[Finding, ...] = ()
    peers: tuple[Finding, ...] = ()
    waived: tuple[Finding, ...] = ()
    healthy: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()


class Cards:
    """The GPUs of the job among those of NVML (GPU3, or its PCI address).

    `listed` has the numbers of /dev/nvidiaN in Slurm's order; if empty, Slurm counts in the order of the PCI bus.

    `known` maps a GPU to its place in Slurm's list; `missing` has the places of the job that no GPU is known for.
    """

    def __init__(self, host: HostFacts, job: Job, listed: Sequence[int] = ()) -> None:
        self._host, self._job = host, set(job.gpus)
        minors, bdfs = self._each("gpu.minor_number"), self._told("gpu.bdf")
        self._at = {bdf: name for name, bdf in bdfs.items()}
        bus = [] if listed else self._on_bus(set(bdfs.values()))
        told = bdfs if bus else self._told("gpu.minor_number")
        places = {key: place for place, key in enumerate(bus or listed or range(MAX_GPUS))}
        self.known = {name: places[key] for name, key in told.items() if key in places}
        numbered = bus or not any(isinstance(fact, Absent) for fact in minors.values())
        self.missing = self._job - set(self.known.values()) if numbered else set()

    def _told(self, name: str) -> dict[str, Any]:
        return {gpu: fact.value for gpu, fact in self._each(name).items() if isinstance(fact, Value)}

    def _on_bus(self, bdfs: set[str]) -> list[str]:
        """Return the addresses of GPUs that NVIDIA's driver has or may have; none if NVML's are not among them."""
        gpus, devices = (self._value(name) for name in ("pci.gpus", "pci.devices"))
        ours = {bdf for bdf in gpus or () if ((devices or {}).get(bdf) or {}).get("driver") in ("nvidia", None)}
        return sorted(ours) if bdfs and bdfs <= ours else []

    def _value(self, name: str) -> Any:
        fact = self._host.facts.get(name)
        return fact.value if isinstance(fact, Value) else None

    def _each(self, name: str) -> Mapping[str, Value | Absent | Unread]:
        fact = self._host.facts.get(name)
        return fact.of if isinstance(fact, Each) else {}

    def of_job(self, subject: str) -> bool:
        """Return whether a finding about this subject concerns the job.

        A GPU that does not report its number is the job's if no GPU reports the number that the job holds.
        """
        if not GPU_SUBJECT.fullmatch(subject):
            return True
        name = self._at.get(subject, subject)
        return self.known[name] in self._job if name in self.known else bool(self.missing)

    def unread(self, names: Iterable[str]) -> str:
        """Return why one of these facts of the job's GPUs could not be read; empty if all were read."""
        mine = [gpu for gpu, place in self.known.items() if place in self._job]
        for name in names:
            for gpu, fact in self._each(name).items():
                if gpu in mine and isinstance(fact, Unread):
                    return f"{name} of {gpu}: {fact.reason}"
        return ""


@dataclass
class SortedFindings:
    """Findings by what they mean for the job."""

    blamed: list[Finding] = field(default_factory=list)
    unknown: list[Finding] = field(default_factory=list)
    peers: list[Finding] = field(default_factory=list)
    waived: list[Finding] = field(default_factory=list)

    def put(self, finding: Finding, facts: Iterable[str], cards: Cards, waivers: Mapping[str, str]) -> None:
        about = {subject: seen for subject, seen in finding.subjects.items() if cards.of_job(subject)}
        others = {subject: seen for subject, seen in finding.subjects.items() if subject not in about}
        if others:
            self.peers.append(replace(finding, subjects=others))
        if others and not about:
            unread = cards.unread(facts) if finding.status == "fail" else ""
            if unread:  # the fault of a peer goes before it in a finding over all GPUs
                self.unknown.append(replace(finding, status="unknown", reason=unread, subjects={}))
        elif finding.status == "unknown":
            self.unknown.append(replace(finding, subjects=about))
        elif finding.check in waivers:
            self.waived.append(replace(finding, status="waived", reason=waivers[finding.check], subjects=about))
        else:
            self.blamed.append(replace(finding, gates=True, subjects=about))


def decide(
    found: Sequence[Finding],
    checks: Sequence[Mapping[str, Any]],
    host: HostFacts,
    job: Job,
    waivers: Mapping[str, str],
    listed: Sequence[int] = (),
) -> Decision:
    """Make the decision. `waivers` maps the id of a check to its owner; for `listed` see Cards."""
    cards, by = Cards(host, job, listed), SortedFindings()
    if len(found) != len(checks):
        raise ValueError(f"{len(found)} findings of {len(checks)} checks")
    for finding, check in zip(found, checks):
        if finding.status in ("fail", "unknown"):
            by.put(finding, check["facts"], cards, waivers)
    parts = (tuple(by.blamed), tuple(by.unknown), tuple(by.peers), tuple(by.waived))
    if by.blamed:
        of_host = named(by.blamed, host)
        return Decision("fail", log.reason(by.blamed, of_host), *parts, devices=of_host)
    gpu = [each for each, check in zip(found, checks) if check["about"] == "gpu" and check["id"] != hardware.CHECK]
    why = log.unknown(by.unknown) if by.unknown else _not_judged(gpu, cards, job)
    if why:
        return Decision("inconclusive", why, *parts)
    healthy = job.gpus if by.peers else {*job.gpus, *cards.known.values()}
    return Decision("pass", "", *parts, tuple(healthy))


def _not_judged(found: Iterable[Finding], cards: Cards, job: Job) -> str:
    """Return why nothing is known of the job's GPUs although nothing failed; empty if something is known."""
    statuses = [finding.status for finding in found]
    if job.has_gpus and statuses and set(statuses) == {"skip"}:
        return "Slurm assigned GPUs to the job, but no check found an NVIDIA GPU to judge"
    if cards.missing and cards.known:
        return f"Slurm assigned GPU {min(cards.missing)} to the job, which NVML does not report"
    return ""
