"""The gating checks as data of a policy, and their verdicts by the code of the audit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

from nodetune import audit, expect
from nodetune.guard.program import Blind
from nodetune.model import Absent, Check, Each, Fact, Finding, HostFacts, Remedy, Unread, Value

NVML = "nvml-not-answering"
DRIVERS_OWN = {"hang", "stuck", "crash"}
"""Ways to fail that are a finding about NVML, not about this tool."""

Failed = Mapping[str, tuple[str, str]]


def entry(check: Check) -> dict[str, Any]:
    """A check as data. The running state gates, so what the next boot would set is not among its facts."""
    running = replace(check, set=None, remedy=replace(check.remedy, persisted=None))
    facts = sorted(audit.raw(audit.declared(running)))
    return {
        "id": check.id,
        "area": check.area,
        "severity": check.severity,
        "title": check.title,
        "accept": expect.to_data(expect.as_predicate(check.accept)),
        "about": "gpu" if any(_of_gpus(name) for name in facts) else "node",
        "facts": facts,
        **({"fact": check.fact} if check.area == "site" else {}),
    }


def _of_gpus(name: str) -> bool:
    return name.partition(".")[0] in ("gpu", "xid") or name in ("pci.gpus", "pci.gpu_bar_mib")


def findings(
    checks: Iterable[Mapping[str, Any]], host: HostFacts, failed: Failed = MappingProxyType({})
) -> list[Finding]:
    """One finding for each check of the policy. Raises Blind where the policy names a check that is not there."""
    return [_of_nvml(each, failed) or audit.judge(_check(each), host) for each in checks]


def host_facts(facts: Mapping[str, Any], failed: Failed) -> HostFacts:
    """What the readers sent, as the audit takes it."""
    return HostFacts(
        "",
        {name: _fact(data) for name, data in facts.items()},
        {"failed": {family: why for family, (_, why) in failed.items()}},
    )


def _fact(data: Mapping[str, Any]) -> Fact:
    if "each" in data:
        return Each({subject: _single(one) for subject, one in data["each"].items()})
    return _single(data)


def _single(data: Mapping[str, Any]) -> Value | Absent | Unread:
    if "value" in data:
        return Value(data["value"])
    return Absent(data["absent"]) if "absent" in data else Unread(data["unread"])


def _of_nvml(check: Mapping[str, Any], failed: Failed) -> Finding | None:
    """NVML that hangs or crashes tells nothing about itself: that is known from its reader's end."""
    kind, why = failed.get("gpu", ("", ""))
    if check["id"] != NVML or kind not in DRIVERS_OWN:
        return None
    return Finding(NVML, "fail", check["severity"], check["title"], observed=why, wanted="ok", gates=True)


def _check(data: Mapping[str, Any]) -> Check:
    """The check as the policy wants it judged: the running state only, for what the next boot brings is no reason now."""
    accept = expect.from_data(data["accept"])
    if data["area"] == "site":
        made = Check(accept, data["severity"], Remedy("manual"), fact=data["fact"], absent="fail")
        return replace(made, id=data["id"], area="site", doc=data["title"])
    name = f"nodetune.checks.{data['area']}.{data['id'].replace('-', '_')}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name != name and not name.startswith(f"{problem.name}."):
            raise
        raise Blind(f"the policy names the check {data['id']}, which this version does not have") from None
    check: Check = module.CHECK
    return replace(
        check,
        accept=accept,
        set=None,
        severity=data["severity"],
        id=data["id"],
        area=data["area"],
        doc=data["title"],
        remedy=replace(check.remedy, persisted=None, boot_default=None),
    )
