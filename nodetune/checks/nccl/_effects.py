"""Harmful values that NCCL reads as intended: noise, lost speed, corrupt data, conflicts between jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Union

from nodetune.checks.shared.nccl_reading import is_at, lists, number
from nodetune.checks.shared.nccl_settings import Problems, Setting, effective, problems, subject
from nodetune.checks.shared.nccl_table import About, release, since, table, variables

Path = Union[bool, str]
"""Whether the host has a path; where its facts do not show it, a text that says with what it would."""

# -- debugging that is left on -----------------------------------------------------------------------------------------


def noisy(settings: Sequence[Setting]) -> Problems:
    """Return debugging settings that are left on."""
    return problems(settings, lambda setting, _: _noise(setting["name"], setting["value"]))


def _noise(name: str, value: str) -> str:
    if name == "NCCL_DEBUG_FILE":
        own = value.startswith("/dev/") or ("%h" in value and "%p" in value)
        return "" if own else f"every process overwrites the same file: use {value}.%h.%p"
    about = table()["noisy"].get(name)
    on = about is not None and _is_on(value, about["at"])
    return f"{value} is left on: {about['keep']} is enough in production" if on else ""


def _is_on(value: str, at: int | list[str]) -> bool:
    """Return whether the value contains one of the words, or is at least the number."""
    return any(is_at(token, at) for token in value.split(",")) if isinstance(at, list) else number(value)[0] >= at


# -- fast paths that are disabled --------------------------------------------------------------------------------------


def lost_paths(
    settings: Sequence[Setting], exists: Mapping[str, Path], version: str = "", sure: bool = True
) -> Problems:
    """Return disabled fast paths that the host has, or if not `sure` those that it may have, and with what.

    `exists` answers the words that `when` of the table may have. `version` is the one NCCL of the host, or nothing.
    """

    def judge(setting: Setting, about: About) -> str:
        off = is_at(setting["value"], about.get("lost_at", []))
        path = off and exists.get(about["when"], False)
        if not path or (path is True) != sure or (version and release(version) < release(since(about))):
            return ""
        return f"{setting['value']} disables {about['loses']}" + ("" if sure else f"; only with {path}")

    found = problems(settings, judge)
    chosen = effective(settings, "NCCL_IB_ADAPTIVE_ROUTING")
    routed = exists.get("infiniband") is True or (chosen and exists.get("rdma") is True and is_at(chosen["value"], 1))
    return {**found, **_no_adaptive_routing(settings)} if routed and sure else found


def _no_adaptive_routing(settings: Sequence[Setting]) -> Problems:
    threshold, buffers = effective(settings, "NCCL_IB_AR_THRESHOLD"), effective(settings, "NCCL_BUFFSIZE")
    size = number(buffers["value"])[0] if buffers else variables()["NCCL_BUFFSIZE"]["default"]
    if threshold is None or number(threshold["value"])[0] <= size:
        return {}
    return {subject(threshold): f"above the buffer size of {size}: disables adaptive routing"}


# -- corrupt data and hangs --------------------------------------------------------------------------------------------


def unsafe(settings: Sequence[Setting], exists: Mapping[str, Path] = MappingProxyType({})) -> Problems:
    """Return values that can corrupt data or hang a job, unless the host lacks the path (see lost_paths)."""

    def judge(setting: Setting, about: About) -> str:
        if setting["name"] == "NCCL_PROTO" and _chosen("LL128", setting["value"]):
            return "forces LL128: corrupts data if the hardware does not support it"
        risky = is_at(setting["value"], about.get("risky_at", []))
        return about["harm"] if risky and exists.get(about.get("when", ""), True) else ""

    return problems(settings, judge)


def _chosen(word: str, value: str) -> bool:
    """Return whether a list names the word and is not an exclusion."""
    return any(word.lower() in one.lower().split(",") for one in lists(value) if not one.startswith("^"))


# -- tuning that NCCL does by itself -----------------------------------------------------------------------------------


def forced(settings: Sequence[Setting]) -> Problems:
    """Return tuning that NCCL does by itself, and better with each release."""
    reported = {*table()["noisy"], *table()["per_job"], "NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"}

    def judge(setting: Setting, about: About) -> str:
        return "" if setting["name"] in reported or _harmless(setting["value"], about) else _not_permanent(about)

    return problems(settings, judge)


def _harmless(value: str, about: About) -> bool:
    """Return whether the value is the default, fine, or reported by another function."""
    fine = about.get("fine", [])
    others = [*about.get("lost_at", []), *about.get("risky_at", [])]
    return fine == "any" or is_at(value, [*fine, *others, about.get("default", "unset")])


def _not_permanent(about: About) -> str:
    if about["kind"] == "debugging":
        return f"for debugging only, according to the user guide; default: {about.get('default', 'unset')}"
    return "not in the user guide: any release may change or remove it" if about["kind"] == "internal" else ""


# -- settings in the wrong place ---------------------------------------------------------------------------------------


def per_job(settings: Sequence[Setting]) -> Problems:
    """Return per-job settings in a file for the whole node."""
    return problems(settings, lambda setting, _: str(table()["per_job"].get(setting["name"], "")))


def against_efa(settings: Sequence[Setting]) -> Problems:
    """Return values that override those of the EFA plugin."""
    defaults = table()["efa_defaults"]

    def judge(setting: Setting, _: About) -> str:
        wanted = defaults.get(setting["name"])
        if wanted is None or is_at(setting["value"], wanted):
            return ""
        return f"{setting['value']} overrides the EFA plugin's own value: {wanted}"

    return problems(settings, judge)


def has_efa(plugins: Iterable[str]) -> bool:
    """Return whether one of the installed network plugins is aws-ofi-nccl."""
    return any("ofi" in path for path in plugins)
