"""Where the jobs of a host run among systemd's groups."""

from __future__ import annotations

from nodetune.api import FactsView

NEEDS = ("slurm.present", "containers.docker", "containers.engines", "kubernetes.present")


def in_system_slice(facts: FactsView) -> str:
    """Return who puts jobs into system.slice, with the group; empty if nobody does."""
    if facts.get("slurm.present"):
        return "Slurm (system.slice/slurmstepd.scope)"
    parent = str((facts.readable("containers.docker") or {}).get("cgroup-parent", "")) or "system.slice"
    docker = "docker" in facts.get("containers.engines", []) and not facts.get("kubernetes.present")
    docker = docker and parent.startswith(("system.slice", "system-"))  # system-NAME.slice is in system.slice
    return "Docker (system.slice/docker-ID.scope)" if docker else ""
