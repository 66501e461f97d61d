"""The gating checks over the facts: the same checks, judged by the same code as in the audit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from nodetune import expect
from nodetune.audit import Prepared
from nodetune.guard.program import Blind
from nodetune.model import Absent, Check, Each, Fact, Finding, HostFacts, Remedy, Unread, Value

NVML = "nvml-not-answering"
DRIVERS_OWN = {"hang", "stuck", "crash"}
"""Ways to fail that are a finding about NVML, not about this tool."""

Failed = Mapping[str, tuple[str, str]]


def findings(checks: Iterable[Mapping[str, Any]], facts: Mapping[str, Any], failed: Failed) -> list[Finding]:
    """One finding for each check of the policy. Raises Blind where the policy names a check that is not there."""
    host = host_facts(facts, failed)
    return [_of_nvml(entry, failed) or Prepared(_check(entry)).judge(host) for entry in checks]


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


def _of_nvml(entry: Mapping[str, Any], failed: Failed) -> Finding | None:
    """NVML that hangs or crashes tells nothing about itself: that is known from its reader's end."""
    kind, why = failed.get("gpu", ("", ""))
    if entry["id"] != NVML or kind not in DRIVERS_OWN:
        return None
    return Finding(NVML, "fail", entry["severity"], entry["title"], observed=why, wanted="ok", gates=True)


def _check(entry: Mapping[str, Any]) -> Check:
    """The check as the policy wants it judged: the running state only, for what the next boot brings is no reason now."""
    accept = expect.from_data(entry["accept"])
    if entry["area"] == "site":
        made = Check(accept, entry["severity"], Remedy("manual"), fact=entry["fact"], absent="fail")
        return replace(made, id=entry["id"], area="site", doc=entry["title"])
    name = f"nodetune.checks.{entry['area']}.{entry['id'].replace('-', '_')}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name != name and not name.startswith(f"{problem.name}."):
            raise
        raise Blind(f"the policy names the check {entry['id']}, which this version does not have") from None
    check: Check = module.CHECK
    return replace(
        check,
        accept=accept,
        set=None,
        severity=entry["severity"],
        id=entry["id"],
        area=entry["area"],
        doc=entry["title"],
        remedy=replace(check.remedy, persisted=None, boot_default=None),
    )
