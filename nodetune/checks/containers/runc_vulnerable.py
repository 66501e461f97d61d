"""runc lacks security fixes.

Why it matters: runc starts the containers of Docker, containerd, CRI-O and podman. Its faults let a container escape to the host
(CVE-2025-31133, CVE-2025-52565, CVE-2025-52881), or its image change files of the host. Distributions fix an older version: the
package of a distribution is compared with the version that its own notice names, and judged by nothing else. The runc that
comes with Docker's packages is compared with the ranges of the advisories. The table used carries its date.
Confirm manually: runc --version; dpkg-query -W runc || rpm -q runc
Side effects of the fix: New containers use the new version; running ones are not touched.
Sources: https://github.com/opencontainers/runc/security/advisories/GHSA-9493-h29p-rfm2 ;
https://github.com/opencontainers/runc/security/advisories/GHSA-xjvp-4fhw-gc47 ; https://ubuntu.com/security/notices/USN-7851-1
"""

from nodetune import data
from nodetune.api import CONTAINERS, Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.shared import floors


def observe(facts: FactsView) -> str:
    version = facts["containers.runc"]
    package = facts[floors.PACKAGES].get("runc")
    return _by_notice(facts, package["version"]) if package else _by_range(version)


def _by_notice(facts: FactsView, version: str) -> str:
    system = f"{facts['host.os']['id']} {facts['host.os']['version']}"
    floor = data.table("floors")["distribution_runc"].get(system)
    if not floor:
        raise FactAbsentError(f"runc is the package of {system}, whose security notices are not in nodetune's data")
    return floors.below(version, floor)


def _by_range(version: str) -> str:
    """Return the fault that is fixed last: its version has the fixes of the others too."""
    mine = data.version(version)
    faults = [
        fault
        for fault in data.table("floors")["runc"]
        if data.version(fault["introduced"]) <= mine < data.version(fault["fixed"])
    ]
    if not faults:
        return ""
    last = max(faults, key=lambda fault: data.version(fault["fixed"]))
    return f"{version}: fixed in {last['fixed']} ({floors.told(last['advisory'], last['cve'])})"


CHECK = Check(
    needs=("containers.runc", floors.PACKAGES, "host.os"),
    observe=observe,
    accept=Empty("a version with the fixes of all advisories"),
    applies=(CONTAINERS,),
    remedy=manual("Update the package that runc belongs to: runc, or containerd.io of Docker's repository."),
    severity="medium",
    name="runc",
)
