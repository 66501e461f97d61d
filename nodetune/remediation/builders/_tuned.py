"""tuned: where it runs, what a plan sets against its profile goes into a profile of nodetune's own.

That profile includes the one that was active and sets only what a plan sets otherwise. One change writes its file and makes
it the active one (playbooks/module_utils/nodetune_host/resources/tuned.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from nodetune.foundation.json_document import merge
from nodetune.remediation.builders._own import Allowed, kept, named, own_file, plain_line
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = ("services.tuned", "services.tuned_profile")
NAME = "nodetune"
Places = Mapping[str, Mapping[str, str]]
"""Section of a profile → key → value."""

NOT_TWICE = ("bootloader", "irqbalance", "mounts", "net", "script", "service", "systemd")
"""Plugins that do more than set values of the kernel, or disturb a network card or a mount. tuned takes a profile back, and
applies it again, for each change of profiles."""

PARTIAL = ("devices", "devices_udev_regex", "enabled")
"""Keys of a section that is not for all devices: a profile that adds to the section would make it one for all."""

CPUS = "/sys/devices/system/cpu"
SYSFS = {
    "epp": (f"{CPUS}/cpufreq/policy*/energy_performance_preference",),
    "boost": (f"{CPUS}/intel_pstate/no_turbo", f"{CPUS}/cpufreq/boost"),
}
"""Settings without a constant key in the plugin cpu: the files themselves. Missing files are left out."""

CPU_KEYS = {
    "governor": ("governor",),
    "max_perf_pct": ("max_perf_pct",),
    "epp": ("energy_performance_preference",),
    "boost": ("no_turbo", "boost"),
}
THP = {
    "/sys/kernel/mm/transparent_hugepage/enabled": ("transparent_hugepages", "transparent_hugepage"),
    "/sys/kernel/mm/transparent_hugepage/defrag": ("transparent_hugepage.defrag",),
}
PROFILES = r"[\w.-]+(,[\w.-]+)*"
VALUE = r"[\w.:,+/ -]*"
"""No character that means something to tuned: `#`, quotes, `${variable}`, and `<` or `>` before a number."""


def active(host: HostView) -> Mapping[str, Any]:
    """Return the active profile of a tuned that runs; else nothing."""
    runs = (host.readable("services.tuned") or {}).get("active") == "active"
    found: Mapping[str, Any] = (runs and host.readable("services.tuned_profile")) or {}
    return found


def of_sysctl(profile: Mapping[str, Any], names: Collection[str], value: str) -> Places:
    """Return what to set so that the profile sets the first of these names to this value; nothing if it sets none otherwise.

    The other names are those that writing the first one clears.
    """
    first, *others = names
    same = _contested(profile, "sysctl", lambda key: key == first, value)
    cleared = _contested(profile, "sysctl", lambda key: key in others, "")
    return merge(same, {section: {first: value} for section in cleared})


def of_sysfs(profile: Mapping[str, Any], path: str, value: str) -> Places:
    """Return what to set so that the profile writes this value to a file under /sys; nothing if it writes no other."""
    found = _contested(profile, "sysfs", lambda key: fnmatchcase(path, key), value)
    huge = _contested(profile, "vm", lambda key: key in THP.get(path, ()), value)
    return merge({section: {path: value} for section in found}, huge)


def of_cpus(profile: Mapping[str, Any], setting: str, value: Any) -> Places:
    """Return what to set so that the profile sets this of all CPUs, whether it does so now or not."""
    texts = {key: _cpu_text(key, value) for key in CPU_KEYS[setting]}
    if setting not in SYSFS:
        return dict.fromkeys(("cpu", *_sections(profile, "cpu")), texts)
    files = {path: _cpu_text(path, value) for path in SYSFS[setting]}
    found = {
        section: {key: text for key, text in texts.items() if key in _settings(profile)[section]}
        for section in _sections(profile, "cpu")
    }
    return {"sysfs": files, **{section: keys for section, keys in found.items() if keys}}


def in_the_way(profile: Mapping[str, Any]) -> str:
    """Return why no profile of nodetune's can be put before the active one; empty if one can."""
    name, chain = str(profile.get("name")), profile.get("chain") or []
    again = _disturbing(profile)
    if "home" not in profile:
        return "the facts do not say where tuned finds profiles: they are from an older nodetune; audit again"
    if not profile["home"]:
        return "profile_dirs in tuned-main.conf leaves out /etc/tuned"
    if profile.get("post_loaded"):
        return f"tuned applies its post-loaded profile {profile['post_loaded']} after every other"
    if not chain:
        return f"no file for the profile {name} was found"
    if NAME in chain and name != NAME:
        return f"the profile {name} includes nodetune's profile"
    if again:
        return f"the profile {name} has a part {', '.join(again)}, which another profile would undo and run again"
    return ""


def _disturbing(profile: Mapping[str, Any]) -> list[str]:
    """Return the plugins that must not run again, with `modules` for a driver other than of CPU frequency that is loaded again."""
    reloaded = (
        key
        for section in _sections(profile, "modules")
        for key, each in _settings(profile)[section].items()
        if str(each["value"]).startswith("+r") and not key.startswith("cpufreq_")
    )
    found = {_plugin(profile, section) for section in _settings(profile)} & set(NOT_TWICE)
    return sorted(found | ({"modules"} if any(reloaded) else set()))


def changes(host: HostView, against: Iterable[tuple[Places, Sequence[str]]]) -> list[dict[str, Any]]:
    """Return the change with all settings for these checks, or None if there are none."""
    wanted: dict[str, Any] = {}
    due: set[str] = set()
    for places, checks in against:
        wanted, due = merge(wanted, places), due.union(checks if places else ())
    return [_change(host, active(host), wanted, due)] if wanted else []


def _change(host: HostView, profile: Mapping[str, Any], wanted: Places, checks: Collection[str]) -> dict[str, Any]:
    """Return the change that sets these in nodetune's profile and makes it the active one. Raise UnfixableError if it cannot."""
    reason = in_the_way(profile)
    if reason:
        raise UnfixableError(
            f"tuned would overwrite it, and nodetune cannot set up a profile there: {reason}. Set it in a profile of "
            "your own and activate that, or: systemctl disable --now tuned; then plan again"
        )
    path = f"{profile['home']}/{NAME}/tuned.conf"
    allowed = _allowed(host)
    below = _included(host, profile, path, allowed)
    _require_whole(profile, wanted)
    settings = {section: _typed(profile, section, keys) for section, keys in wanted.items()}
    settings["main"] = {"include": below.replace(" ", ",")}
    made = own_file(host, path, "tuned.conf.j2", settings, allowed)
    host.note(
        f"tuned runs: its profile {below} stays, included by nodetune's ({path}), which becomes the active one. For "
        "this, tuned briefly undoes its settings and applies them again."
    )
    return {**made, "change": "tuned", "includes": below, "checks": sorted(checks)}


def _included(host: HostView, profile: Mapping[str, Any], path: str, allowed: Allowed) -> str:
    """Return the names of the profiles to include: the active ones, or those that nodetune's includes already."""
    name = profile["name"]
    if name == NAME:
        name = kept(host, path, allowed).get("main", {}).get("include", "").replace(",", " ")
    if not name:
        raise UnfixableError(
            f"{path} is active but its line of settings is missing, so its included profiles are unknown: activate "
            "another profile, then plan again"
        )
    return " ".join(named(each, "profile of tuned") for each in name.split())


def _require_whole(profile: Mapping[str, Any], wanted: Places) -> None:
    """Raise UnfixableError for a section that is not for all devices, and for a value that tuned would read otherwise."""
    for section, keys in wanted.items():
        partial = sorted(set(PARTIAL) & set(_settings(profile).get(section, {})))
        if partial:
            raise UnfixableError(
                f"the section [{named(section, 'section')}] of tuned's profile {profile['name']} has "
                f"{', '.join(partial)} and does not apply to all: set it in that profile, then plan again"
            )
        for key, value in keys.items():
            named(value, f"value of {key} for tuned", VALUE)


def _typed(profile: Mapping[str, Any], section: str, keys: Mapping[str, str]) -> dict[str, str]:
    """Return the keys with the plugin's name, where the section's is another: what includes it has to repeat that."""
    plugin = _plugin(profile, section)
    return dict(keys) if plugin == section else {"type": plugin, **keys}


def _allowed(host: HostView) -> Allowed:
    """Allow what checks set, under any plain name of a section."""
    keys_of_cpus = {key for keys in (*CPU_KEYS.values(), *SYSFS.values()) for key in keys}
    keys_of_thp = {key for keys in THP.values() for key in keys}
    known = {"type", *host.targets("sysctl"), *host.targets("sysfs"), *keys_of_cpus, *keys_of_thp}

    def of_profile(keys: tuple[str, ...], value: Any) -> bool:
        if keys == ("main", "include"):
            return plain_line(value, PROFILES)
        return len(keys) == 2 and plain_line(keys[0], r"[\w.-]+") and keys[1] in known and plain_line(value, VALUE)

    return of_profile


def _contested(profile: Mapping[str, Any], plugin: str, is_meant: Any, value: str) -> dict[str, dict[str, str]]:
    """Return {section: {key: value}} of what the profile sets to something else."""
    found = {
        section: {
            key: value
            for key, each in _settings(profile)[section].items()
            if is_meant(key) and _differs(str(each["value"]), value)
        }
        for section in _sections(profile, plugin)
    }
    return {section: keys for section, keys in found.items() if keys}


def _differs(theirs: str, value: str) -> bool:
    """Return whether tuned would change the value to theirs; `>5` is at least 5."""
    text = theirs.strip("\"'")
    bound = re.fullmatch(r"([<>])\s*(\d{1,18})", text)
    if bound and value.isdigit():
        return int(value) < int(bound[2]) if bound[1] == ">" else int(value) > int(bound[2])
    return text.split() != value.split()


def _settings(profile: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = profile.get("settings") or {}
    return found


def _sections(profile: Mapping[str, Any], plugin: str) -> list[str]:
    return [section for section in _settings(profile) if _plugin(profile, section) == plugin]


def _plugin(profile: Mapping[str, Any], section: str) -> str:
    """Return the plugin that a section is for: its name, if it does not say another."""
    return str(_settings(profile).get(section, {}).get("type", {}).get("value", section))


def _cpu_text(key: str, value: Any) -> str:
    """Return a setting of CPUs as tuned's key or the file has it: of boost, no_turbo is the opposite."""
    return str(int(value != key.endswith("no_turbo"))) if isinstance(value, bool) else str(value)
