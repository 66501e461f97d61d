"""The lines of slurm.conf that call the guard, and the settings of the running Slurm."""

import re
from collections.abc import Mapping

from nodetune.guard.deploy.paths import HOME

LINES: Mapping[str, str | list[str]] = {
    "Prolog": f"{HOME}/prolog",
    "Epilog": f"{HOME}/epilog",
    "TaskProlog": f"{HOME}/taskprolog",
    "PrologFlags": ["Alloc"],
    "SchedulerParameters": ["nohold_on_prolog_fail"],
    "HealthCheckProgram": f"{HOME}/healthcheck",
    "HealthCheckInterval": "90",
}
"""Settings of slurm.conf: a text, or words that must be included. Alloc: a prolog on every node of a job before
it starts; nohold_on_prolog_fail: a job that met a sick node is queued again and not held. From Slurm 26.05 on the interval must exceed HealthCheckTimeout, 60 by default.
"""


def running(text: str) -> dict[str, str]:
    """Parse `scontrol show config` into {name in small letters: text}; what is not set is empty.

    Newer versions of Slurm number prologs: Prolog[0].
    """
    found: dict[str, str] = {}
    for name, said in re.findall(r"^(\w+)(?:\[\d+\])?\s*= ?(.*)$", text, re.MULTILINE):
        known, value = found.get(name.lower(), ""), said.strip().replace("(null)", "")
        found[name.lower()] = f"{known},{value}" if known else value
    return found


def missing(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the lines that slurm.conf lacks: name → value, which includes words that are set already."""
    found: dict[str, str] = {}
    for name, value in LINES.items():
        present = str(settings.get(name.lower(), ""))
        words = [word.strip() for word in present.split(",") if word.strip()]
        if isinstance(value, list):
            added = [word for word in value if word.lower() not in {each.lower() for each in words}]
            if added:
                found[name] = ",".join([*words, *added])
        elif value not in words and (value.startswith("/") or not re.match(r"[1-9]", present)):
            found[name] = value
    if str(settings.get("healthchecknodestate", "")).upper() in ("START_ONLY", "REBOOT_ONLY"):
        found["HealthCheckNodeState"] = "ANY"  # else it never runs between jobs
    return found


HEALTH_TIMEOUT = "HealthCheckTimeout"
TIMEOUTS = ("PrologEpilogTimeout", "PrologTimeout", "EpilogTimeout", HEALTH_TIMEOUT)
NONE = 65534
"""Slurm's number for a timeout that is not set."""


def hurried(settings: Mapping[str, str], seconds: float) -> dict[str, int]:
    """Return Slurm's timeouts that are shorter than the guard may take: Slurm would kill it, and drain the node after a prolog or epilog."""
    told = {name: re.match(r"\d+", settings.get(name.lower(), "")) for name in TIMEOUTS}
    return {name: int(found[0]) for name, found in told.items() if found and int(found[0]) < min(seconds, NONE)}


def calls_us(settings: Mapping[str, str]) -> bool:
    """Return whether a running Slurm calls anything in HOME."""
    return any(f"{HOME}/" in text for text in settings.values())
