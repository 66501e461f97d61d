"""A check's docstring split at its fixed headings, and descriptions of the wanted value and the fix."""

import re
from dataclasses import dataclass
from typing import Any

from nodetune import checks
from nodetune.api import predicates
from nodetune.api.model import Check, disruption_name
from nodetune.checks import fleet_comparisons
from nodetune.foundation import text

HEADINGS = (
    "Why it matters",
    "Healthy exception",
    "Does not gate",
    "Confirm manually",
    "Side effects of the fix",
    "Sources",
)
OPTIONAL = ("Healthy exception", "Does not gate")
"""Critical and high checks have the first (healthy states that look alike), critical ones without gate the other."""

FORMULAS = {
    "cpu.count": "the number of CPUs",
    "derived.dirty_bytes": "1/8 of RAM, 8 GiB or less",
    "derived.min_free_kbytes": "1/2048 of RAM, 132 MiB to 1 GiB",
    "derived.min_free_kbytes_ceiling": "5 % of RAM",
    "derived.pid_max": "1024 for each CPU, 32768 or more",
    "derived.tcp_buffer_bytes": "2 ms of the fastest link's traffic, 16 to 256 MiB",
    "derived.tcp_rmem": "the first two as they are, then 2 ms of the fastest link's traffic, 16 to 256 MiB",
    "derived.tcp_wmem": "the first two as they are, then 2 ms of the fastest link's traffic, 16 to 256 MiB",
    "derived.usual_power_limits": "for each model, the limit of most of its GPUs",
    "gpu.count": "the number of GPUs",
    "gpu.default_applications_clock.sm": "the default of the board",
    "gpu.driver_version": "the version of the loaded driver",
    "gpu.ecc_mode": "the mode in force",
    "gpu.max_pcie_link_generation": "the highest of GPU and slot",
    "gpu.mig_mode": "the mode in force",
    "gpu.power_management_default_limit": "the default of the board",
    "gpu.power_management_limit": "the limit that is set",
    "kernel.next": "the kernel of the next boot",
    "kernel.nvidia_module_version": "the version of the loaded module",
    "net.local_cpus": "the number of CPUs near the card",
}
"""A fact from which a wanted value is computed → a description of the formula."""


@dataclass(frozen=True)
class Explanation:
    """A check's docstring: the title, and heading → text (one paragraph each)."""

    title: str
    sections: dict[str, str]


def explain(check: Check) -> Explanation:
    """Split the docstring. A missing heading is missing here too."""
    pattern = "|".join(re.escape(each) for each in HEADINGS)
    parts = re.split(rf"^({pattern}):", check.doc, flags=re.MULTILINE)
    sections = {head: " ".join(body.split()) for head, body in zip(parts[1::2], parts[2::2], strict=True)}
    return Explanation(check.title, sections)


def comparisons() -> list[Check]:
    """Return the comparisons over a fleet as checks."""
    return [each.as_check() for each in fleet_comparisons.every().values()]


def area(check_id: str) -> str:
    """Return the area of a check or comparison that comes with nodetune; `site` for those of a site."""
    if fleet_comparisons.is_fleet(check_id):
        return fleet_comparisons.AREA
    return checks.catalogue().get(check_id, "site.").split(".")[-2]


def severity(check_id: str) -> str:
    """Return the severity of a check or comparison as it comes with nodetune; empty for those of a site."""
    if check_id in checks.catalogue():
        return checks.load(check_id).severity
    compared = fleet_comparisons.every().get(check_id)
    return compared.severity if compared else ""


def wanted(check: Check) -> str:
    """Describe what the check accepts, with formulas for values from facts."""
    if check.accept is None:
        return "the same on hosts that should be alike" if fleet_comparisons.is_fleet(check.id) else "left untouched"
    worded = predicates.resolve(check.accept, formula)
    return predicates.as_predicate(worded).describe(lambda value: text.value(value, check.unit))


def formula(fact: str) -> str:
    """Describe how a value is computed from a fact."""
    return FORMULAS.get(fact, f"the host's {fact}")


def fix(check: Check) -> str:
    """Describe the fix in one line with the value that it writes."""
    remedy = check.remedy
    if remedy.kind == "manual":
        return remedy.steps or "nothing to set"
    if check.set is None:
        return remedy.steps or f"{remedy.kind.replace('_', ' ')} {remedy.target}: left untouched"
    where = f", persisted in {remedy.file}" if remedy.file else ""
    disruption = f"disruption: {disruption_name(remedy.disruption)}"
    if remedy.kind == "swap_off":
        return f"turn swap off{where} ({disruption})"
    return f"{remedy.kind.replace('_', ' ')} {remedy.target} = {_written(check)}{where} ({disruption})"


def _written(check: Check) -> str:
    """Return what a fix writes: as in the file, with its unit; a formula if it comes from facts."""
    value: Any = predicates.resolve(check.set, formula)
    if predicates.refs(check.set):
        return f"({value})"
    shown = text.setting(value, check.unit)
    written = text.setting(value)
    return written if shown == written or isinstance(value, bool) or value == 0 else f"{written} ({shown})"
