"""The guard's policy and program as they are put on a node. Made where nodetune is installed, never on the node."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import nodetune
from nodetune import audit, bundle, expect, paths, waive
from nodetune.guard.epilog import SNAPSHOT
from nodetune.model import Check, Waiver
from nodetune.profile import Profile

SCHEMA = "nodetune.guard-policy/1"
DEFAULTS: Mapping[str, Any] = {
    "mode": "observe",
    "act": "slurm",
    "seconds": {"total": 5, "step": 3, "stuck": 20},
    "reuse_seconds": 60,
    "cap_nodes_per_hour": 5,
    "shared": None,
    "off": ["/etc/nodetune/guard.off"],
    "scontrol": "/usr/bin/scontrol",
    "kill_strays": False,
    "environment": {},  # what tasks get, beside what the profile sets in nccl.conf
    "snapshot": [name for name in SNAPSHOT if name != "gpu.nvlink_errors"],  # which takes 45 ms a GPU (H200)
}
"""What a site may set, and what it gets when it does not: see schemas/guard-policy.json."""

MODULES = ("__init__", "audit", "conditions", "derived", "expect", "model", "remedies", "show", "siblings", "view")
FOLDERS = ("checks", "data", "guard", "nccl", "probe")


def make(profile: Profile, host: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The policy of one host from its resolved profile. Raises ValueError for a setting that does not exist."""
    given = dict(settings or {})
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"the guard has no setting {unknown[0]!r}: there are {', '.join(DEFAULTS)}")
    seconds = {**DEFAULTS["seconds"], **given.pop("seconds", {})}
    environment = {**_nccl(profile.checks), **_environment(given.pop("environment", {}))}
    return {
        "schema": SCHEMA,
        "nodetune": nodetune.__version__,
        "host": host,
        "profile": profile.name,
        "time": int(time.time()),
        **DEFAULTS,
        **given,
        "seconds": seconds,
        "environment": environment,
        "checks": [_entry(check) for check in profile.checks if check.id in profile.gates and check.accept is not None],
        "waivers": [_waiver(each) for each in profile.waivers if waive.covers(each.hosts, host)],
    }


def _nccl(checks: Iterable[Check]) -> dict[str, str]:
    """The profile's NCCL settings: what its checks would write to /etc/nccl.conf."""
    wanted = ((check.remedy.target, check.set) for check in checks if check.remedy.kind == "nccl_conf")
    return {name: str(value) for name, value in wanted if isinstance(value, str | int)}


def _environment(given: Any) -> dict[str, str]:
    """Raises ValueError for what is no name or no line of text: Slurm takes up what is printed, line by line."""
    if not isinstance(given, Mapping):
        raise ValueError(f'environment is {given!r}: give {{"NAME": "text"}}')  # noqa: TRY004  (a setting, not a call)
    for name, value in given.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", str(name)) or not str(value).isprintable():
            raise ValueError(f"environment: {name}={value!r} cannot be set: a name, and one line of text")
    return {str(name): str(value) for name, value in given.items()}


def _entry(check: Check) -> dict[str, Any]:
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


def _waiver(waiver: Waiver) -> dict[str, str]:
    return {"id": waiver.id, "reason": waiver.reason, "owner": waiver.owner, "until": waiver.until}


def program() -> dict[str, Path | str]:
    """What the program consists of: path below its folder → the file to copy, or the text to write."""
    files: dict[str, Path | str] = {f"nodetune/{name}.py": paths.PACKAGE / f"{name}.py" for name in MODULES}
    for folder in FOLDERS:
        files |= {f"nodetune/{each}": paths.PACKAGE / each for each in _sources(folder)}
    return {**files, "pynvml.py": bundle.pynvml_source()}


def _sources(folder: str) -> Iterable[str]:
    found = sorted((paths.PACKAGE / folder).rglob("*.py"))
    return (str(path.relative_to(paths.PACKAGE)) for path in found)
