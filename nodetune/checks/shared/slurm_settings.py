"""Read settings of slurm.conf: lists of words and defaults."""

from __future__ import annotations

from collections.abc import Mapping

from nodetune.api import FactAbsentError, FactsView

Settings = Mapping[str, str]
PLUGINS = ("nvml", "nvidia", "nrt", "rsmi", "oneapi")
"""Words of AutoDetect= that need a plugin of this name."""


def words(settings: Settings, name: str) -> set[str]:
    """Return a comma-separated list as lower-case words; empty where it is not set."""
    return {word.strip().lower() for word in settings.get(name, "").split(",") if word.strip()}


def comes_from_submitter(settings: Settings, limit: str) -> bool:
    """Return whether a job gets the submitting shell's limit (Slurm's default for all), not slurmd's."""
    excepted = words(settings, "propagateresourcelimitsexcept")
    if excepted:
        return limit.lower() not in excepted and "all" not in excepted
    propagated = words(settings, "propagateresourcelimits") or {"all"}
    return limit.lower() in propagated or "all" in propagated


def require_prolog(facts: FactsView) -> Settings:
    """Return the settings of a node that runs a prolog. Raise FactAbsentError if there is none."""
    settings: Settings = facts["slurm.config"]["settings"]
    if not settings.get("prolog"):
        raise FactAbsentError("no Prolog is set in slurm.conf")
    return settings


def cannot_detect(facts: FactsView) -> str:
    """Return the AutoDetect= of gres.conf for which this slurmd has no plugin; empty if it has, or that is unknown."""
    word = (facts.readable("slurm.gres") or {}).get("autodetect") or "off"
    return str(word) if word in PLUGINS and word not in facts.readable("slurm.detects", PLUGINS) else ""
