"""The gating checks as data of a policy, and their verdicts by the code of the audit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

from nodetune.api import predicates
from nodetune.api.model import Absent, Check, Each, Fact, Finding, HostFacts, Remedy, Unread, Value
from nodetune.audit import evaluate
from nodetune.guard.node.invocation import InconclusiveError

NVML = "nvml-not-answering"
DRIVERS_OWN = {"hang", "stuck", "crash"}
"""Ways to fail that are a finding about NVML, not about this tool."""

OF_GPUS = ("pci.gpus", "pci.gpu_bar_mib")
"""Facts about GPUs in addition to those of NVML and the kernel log."""

Failed = Mapping[str, tuple[str, str]]


def entry(check: Check) -> dict[str, Any]:
    """Return a check as data, without its persisted fact: the running state gates, and what the log has lost holds no job."""
    running = replace(check, set=None, ceiling="", log=0.0, remedy=replace(check.remedy, persisted=None))
    facts = sorted(evaluate.raw(evaluate.declared(running)))
    return {
        "id": check.id,
        "area": check.area,
        "severity": check.severity,
        "title": check.title,
        "accept": predicates.to_data(predicates.as_predicate(check.accept)),
        "about": "gpu" if any(name in OF_GPUS or name.startswith(("gpu.", "xid.")) for name in facts) else "node",
        "facts": facts,
        **(_judged(check) if check.area == "site" else {}),
    }


def _judged(check: Check) -> dict[str, Any]:
    """Return what a check of the site's own judges."""
    from nodetune.checks.shared import site_xids

    xid = site_xids.number_of(check)
    return {"fact": check.fact} if xid is None else {"xid": xid}


def findings(
    checks: Iterable[Mapping[str, Any]],
    host: HostFacts,
    failed: Failed = MappingProxyType({}),
    views: Mapping[str, HostFacts] = MappingProxyType({}),
) -> list[Finding]:
    """Return one finding for each check of the policy. Raise InconclusiveError if a check is missing.

    `views`: the facts for checks that get others than `host`.
    """
    return [_of_nvml(each, failed) or evaluate.judge(_check(each), views.get(each["id"], host)) for each in checks]


def load(checks: Iterable[Mapping[str, Any]]) -> None:
    """Import the checks of the policy. Raise InconclusiveError if one is missing."""
    for each in checks:
        _check(each)


def for_a_drain(facts: Mapping[str, Any], failed: Failed) -> dict[str, HostFacts]:
    """Return the view for a drain, which is for the whole node: a GPU waits for its reset until all are idle.

    So the check judges a GPU whose architecture it does not know.
    """
    return {"gpu-recovery-needed": host_facts({**facts, "gpu.architecture": {"unread": "not asked"}}, failed)}


def host_facts(facts: Mapping[str, Any], failed: Failed) -> HostFacts:
    """Turn what the readers sent into facts for the audit."""
    about = {"failed": {family: why for family, (_, why) in failed.items()}}
    return HostFacts("", {name: _fact(data) for name, data in facts.items()}, about)


def _fact(data: Mapping[str, Any]) -> Fact:
    if "each" in data:
        return Each({subject: _single(one) for subject, one in data["each"].items()})
    return _single(data)


def _single(data: Mapping[str, Any]) -> Value | Absent | Unread:
    if "value" in data:
        return Value(data["value"])
    return Absent(data["absent"]) if "absent" in data else Unread(data["unread"])


def _of_nvml(check: Mapping[str, Any], failed: Failed) -> Finding | None:
    """Return the finding of a check on NVML itself if its reader hung or crashed."""
    kind, why = failed.get("gpu", ("", ""))
    if check["id"] != NVML or kind not in DRIVERS_OWN:
        return None
    return Finding(NVML, "fail", check["severity"], check["title"], observed=why, wanted="ok", gates=True)


def _check(data: Mapping[str, Any]) -> Check:
    """Return the check as in the policy, for the running state only: the next boot is not a reason to hold a job."""
    try:
        accept = predicates.from_data(data["accept"])
    except ValueError as problem:
        raise InconclusiveError(f"the policy's {data['id']}: accept: {problem}: install the guard again") from None
    if data["area"] == "site":
        made = Check(accept, data["severity"], Remedy("manual"), **_source(data))
        return replace(made, id=data["id"], area="site", doc=data["title"])
    name = f"nodetune.checks.{data['area']}.{data['id'].replace('-', '_')}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name != name and not name.startswith(f"{problem.name}."):
            raise
        raise InconclusiveError(f"the policy names the check {data['id']}, which this version does not have") from None
    check: Check = module.CHECK
    if not predicates.alike(accept, check.accept):
        wrong = f"the policy's {data['id']} accepts {accept.describe()!r}, which no value of it can be"
        raise InconclusiveError(f"{wrong}: install the guard again")
    return replace(
        check,
        accept=accept,
        set=None,
        ceiling="",
        severity=data["severity"],
        id=data["id"],
        area=data["area"],
        doc=data["title"],
        remedy=replace(check.remedy, persisted=None, boot_default=None),
    )


def _source(data: Mapping[str, Any]) -> dict[str, Any]:
    if "xid" not in data:
        return {"fact": data["fact"], "absent": "fail"}
    from nodetune.checks.shared import site_xids  # here: with it come tables that most policies do not need

    return site_xids.source(data["xid"])
