"""How slurm.conf's settings are read: lists of words, and what its defaults mean."""

from __future__ import annotations

from collections.abc import Mapping

from nodetune.view import Missing, View

Settings = Mapping[str, str]


def words(settings: Settings, name: str) -> set[str]:
    """A comma list as a set of lower-case words; empty where it is not set."""
    return {word.strip().lower() for word in settings.get(name, "").split(",") if word.strip()}


def comes_from_submitter(settings: Settings, limit: str) -> bool:
    """Whether a job gets the submitting shell's limit (Slurm's default for all) and not slurmd's own."""
    kept = words(settings, "propagateresourcelimitsexcept")
    if kept:
        return limit.lower() not in kept and "all" not in kept
    sent = words(settings, "propagateresourcelimits") or {"all"}
    return limit.lower() in sent or "all" in sent


def require_prolog(facts: View) -> Settings:
    """The settings of a node that runs a prolog. Raises Missing where none is set."""
    settings: Settings = facts["slurm.config"]["settings"]
    if not settings.get("prolog"):
        raise Missing("no Prolog is set in slurm.conf")
    return settings
