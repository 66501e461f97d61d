"""The guard's policy as it is put on a node. Made where nodetune is installed, never on the node. Pure."""

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodetune
from nodetune.api.model import Check, Waiver
from nodetune.api.predicates import Equals
from nodetune.config import waivers
from nodetune.config.profile import Overlay, Profile
from nodetune.foundation import UserError, yaml_lines
from nodetune.foundation.text import json_object
from nodetune.guard.node import gating_checks
from nodetune.guard.node import policy as on_node
from nodetune.guard.node.epilog import SNAPSHOT
from nodetune.guard.node.policy import LIMITS

SCHEMA = "nodetune.guard-policy/1"
DEFAULTS: Mapping[str, Any] = {
    "mode": "observe",
    "act": "slurm",
    "seconds": {name: LIMITS[name][0] for name in ("total", "step", "stuck")},
    "reuse_seconds": LIMITS["reuse_seconds"][0],
    "cap_nodes_per_hour": LIMITS["cap_nodes_per_hour"][0],
    "shared": None,
    "off": ["/etc/nodetune/guard.off"],
    "scontrol": "/usr/bin/scontrol",
    "kill_strays": False,
    "environment": {},  # what tasks get, in addition to what the profile sets in nccl.conf
    "inspector": {},  # {"plugin": FILE, "folder": DIR}: tasks get NCCL's Inspector
    "snapshot": [name for name in SNAPSHOT if name != "gpu.nvlink_errors"],  # which takes 45 ms a GPU (H200)
}
"""The settings that a site may change, with their defaults: see schemas/guard-policy.json."""


class SettingError(UserError):
    """A setting of the policy that does not exist or is out of range."""


def check_settings(settings: Mapping[str, Any]) -> None:
    """Check settings before any host is asked. Raise SettingError."""
    for name, value in settings.items():
        if isinstance(DEFAULTS.get(name), dict) and not isinstance(value, dict):
            raise SettingError(f"{name} is {value!r} and not a mapping, such as {json.dumps(DEFAULTS[name])}")
    checked(Profile(("training",), (), frozenset()), "all hosts", settings)


def checked(profile: Profile, host: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Make the policy of one host, and check it as the node does. Raise SettingError."""
    try:
        policy = make(profile, host, settings)
        on_node.Policy(policy, "")
    except (TypeError, ValueError) as problem:
        raise SettingError(f"the policy of {host}: {problem}") from None
    return policy


def make(profile: Profile, host: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Make the policy of one host from its resolved profile. Raise ValueError for an unknown setting."""
    chosen = {**DEFAULTS, **(settings or {})}
    unknown = sorted(set(chosen) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"unknown guard setting {unknown[0]!r}: there are {', '.join(DEFAULTS)}")
    return {
        "schema": SCHEMA,
        "nodetune": nodetune.__version__,
        "host": host,
        "profile": profile.name,
        "time": int(time.time()),
        **chosen,
        "seconds": {**DEFAULTS["seconds"], **chosen["seconds"]},
        "environment": {**_nccl(profile.checks), **_environment(chosen["environment"])},
        "inspector": _inspector(chosen["inspector"]),
        "gpus": _promised(profile.checks),
        "checks": [
            gating_checks.entry(each) for each in profile.checks if each.id in profile.gates and each.accept is not None
        ],
        "waivers": [_waiver(each) for each in profile.waivers if waivers.covers(each.hosts, host)],
    }


def _promised(checks: Iterable[Check]) -> int:
    """Return how many GPUs the site says that a host has, by gpu-count-unexpected; 0 if it does not say."""
    accepted = next((each.accept for each in checks if each.id == "gpu-count-unexpected"), None)
    number = accepted.wanted if isinstance(accepted, Equals) else accepted
    return number if isinstance(number, int) and number > 0 else 0


def _nccl(checks: Iterable[Check]) -> dict[str, str]:
    """Return the NCCL settings of the profile: what its checks would write to /etc/nccl.conf, not the lines they remove."""
    remedies = ((check.remedy, check.set) for check in checks)
    wanted = ((each.target, value) for each, value in remedies if each.kind == "nccl_conf" and not each.per_subject)
    return {name: str(value) for name, value in wanted if isinstance(value, str | int)}


def _environment(variables: Any) -> dict[str, str]:
    """Check names and values: Slurm reads what is printed line by line. Raise ValueError."""
    if not isinstance(variables, Mapping):
        raise ValueError(f'environment is {variables!r}: give {{"NAME": "text"}}')  # noqa: TRY004  (a setting, not a call)
    for name, value in variables.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", str(name)) or not str(value).isprintable():
            raise ValueError(f"environment: {name}={value!r} cannot be set: a name, and one line of text")
    return {str(name): str(value) for name, value in variables.items()}


def _inspector(chosen: Any) -> dict[str, str]:
    """Check what tasks need for NCCL's Inspector: its library, and a folder that users can write in. Raise ValueError."""
    if chosen == {}:
        return {}
    if not isinstance(chosen, Mapping) or set(chosen) != {"plugin", "folder"}:
        raise ValueError(
            f'inspector is {chosen!r}: give {{"plugin": "/…/libnccl-profiler-inspector.so", "folder": "/…"}}'
        )
    for name, path in chosen.items():
        if not str(path).startswith("/") or not str(path).isprintable():
            raise ValueError(f"inspector: {name} is {path!r} and not an absolute path")
    return {name: str(path).rstrip("/") for name, path in chosen.items()}


def _waiver(waiver: Waiver) -> dict[str, str]:
    return {"id": waiver.id, "reason": waiver.reason, "owner": waiver.owner, "until": waiver.until}


def text(policy: Mapping[str, Any], installed: str = "") -> str:
    """Return the text of the file; the installed text if only the date differs."""
    before = read(installed)
    if before and {**before, "time": 0} == {**policy, "time": 0}:
        return installed
    return json.dumps(policy, indent=1) + "\n"


def read(content: str) -> dict[str, Any]:
    """Parse an installed policy; return an empty one if the text is invalid."""
    found = json_object(content)
    return found if found.get("schema") == SCHEMA else {}


def require_gateable(resolved: Profile, site: Overlay | None) -> None:
    """Raise FileError for a check of a site file that gates but reads nccl.conf, which only the controller does."""
    if site is None:
        return
    for check in resolved.checks:
        read = check.area == "site" and "nccl.settings" in check.needs
        if read and check.id in resolved.gates and check.accept is not None:
            yaml_lines.load(Path(site.file)).fail(
                f"{check.id} cannot gate: it needs what reads nccl.conf, which the guard's program on a node does not have; "
                "let it not gate (gate: false)",
                "checks",
                check.id,
                "gate",
            )


@dataclass(frozen=True)
class PolicyDiff:
    """The differences to another policy: ids of checks, and settings as (name, before, after)."""

    gates: tuple[str, ...] = ()
    gates_no_more: tuple[str, ...] = ()
    judged_otherwise: tuple[str, ...] = ()
    settings: tuple[tuple[str, Any, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.gates or self.gates_no_more or self.judged_otherwise or self.settings)


COMPARED = (*DEFAULTS, "waivers", "profile", "nodetune")


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> PolicyDiff:
    """Return how `after` differs from `before` (empty: nothing is installed)."""
    old, new = ({check["id"]: check for check in policy.get("checks", ())} for policy in (before, after))
    return PolicyDiff(
        tuple(sorted(set(new) - set(old))),
        tuple(sorted(set(old) - set(new))),
        tuple(sorted(name for name in set(old) & set(new) if _judged(old[name]) != _judged(new[name]))),
        tuple(
            (name, before.get(name), after.get(name))
            for name in COMPARED
            if before
            and before.get(name, DEFAULTS.get(name)) != after.get(name)  # an older policy lacks newer settings
        ),
    )


def _judged(check: Mapping[str, Any]) -> Any:
    return {name: check.get(name) for name in ("accept", "severity", "about", "fact")}
