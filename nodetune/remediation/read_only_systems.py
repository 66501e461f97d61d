"""Systems whose files belong to an image: what a fix writes there is refused, or gone with the next update. Pure."""

from __future__ import annotations

from nodetune.api.model import HostFacts, Value

FACT = "host.os"
COREOS = "a MachineConfig, KubeletConfig or the Node Tuning Operator"
SYSTEMS = {
    "bottlerocket": "its settings (apiclient set, or user data)",
    "cos": "the node system configuration of GKE",
    "flatcar": "its Ignition configuration",
    "fedora-coreos": "its Ignition configuration",
    "opensuse-microos": "transactional-update",
    "rhcos": COREOS,
    "scos": COREOS,
    "sl-micro": "transactional-update",
    "sle-micro": "transactional-update",
    "talos": "its machine configuration (talosctl patch machineconfig)",
}
"""Id of the system → what changes its settings."""


def reason(facts: HostFacts) -> str:
    """Return why nothing can be fixed on a host, with what to use instead; empty if it has files of its own."""
    found = facts.get(FACT)
    system = found.value if isinstance(found, Value) and isinstance(found.value, dict) else {}
    name, known = str(system.get("name") or system.get("id")), str(system.get("id"))
    if "CoreOS" in name:  # its id is that of the distribution that it is made of
        known = "fedora-coreos" if known == "fedora" else "rhcos"
    return f"{name} has a read-only system: set it by {SYSTEMS[known]}" if known in SYSTEMS else ""
