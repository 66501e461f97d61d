"""Values that are read as they look, and what they do: noise, lost speed, wrong data, jobs in each other's way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nodetune.nccl.judging import problems
from nodetune.nccl.precedence import effective
from nodetune.nccl.reading import is_at, lists, number
from nodetune.nccl.settings import Problems, Setting, subject
from nodetune.nccl.table import About, table, variables

# -- debugging that was left on --------------------------------------------------------------------------------------------


def noisy(settings: Sequence[Setting]) -> Problems:
    """Debugging that was left on."""
    return problems(settings, lambda setting, _: _noise(setting["name"], setting["value"]))


def _noise(name: str, value: str) -> str:
    if name == "NCCL_DEBUG_FILE":
        own = value.startswith("/dev/") or ("%h" in value and "%p" in value)
        return "" if own else f"every process writes over the same file: {value}.%h.%p"
    about = table()["noisy"].get(name)
    on = about is not None and _is_on(value, about["at"])
    return f"{value} is left on: {about['keep']} is enough in production" if on else ""


def _is_on(value: str, at: int | list[str]) -> bool:
    """One of the words, or a number from there on."""
    return any(is_at(token, at) for token in value.split(",")) if isinstance(at, list) else number(value)[0] >= at


# -- fast paths that are switched off ----------------------------------------------------------------------------------------


def lost_paths(settings: Sequence[Setting], has: Mapping[str, bool]) -> Problems:
    """Fast paths that are switched off; `has` tells what the host has (rdma, efa), without which nothing is lost."""

    def judge(setting: Setting, about: About) -> str:
        missed = "lost_at" in about and ("when" not in about or has.get(about["when"], False))
        off = missed and is_at(setting["value"], about["lost_at"])
        return f"{setting['value']} gives up {about['loses']}" if off else ""

    return {**problems(settings, judge), **_no_adaptive_routing(settings)}


def _no_adaptive_routing(settings: Sequence[Setting]) -> Problems:
    threshold, buffers = effective(settings, "NCCL_IB_AR_THRESHOLD"), effective(settings, "NCCL_BUFFSIZE")
    size = number(buffers["value"])[0] if buffers else variables()["NCCL_BUFFSIZE"]["default"]
    if threshold is None or number(threshold["value"])[0] <= size:
        return {}
    return {subject(threshold): f"above the buffer size of {size}: gives up adaptive routing altogether"}


# -- wrong data, and hangs ---------------------------------------------------------------------------------------------------


def unsafe(settings: Sequence[Setting]) -> Problems:
    """Values that can give wrong data, or hang a job."""
    return problems(settings, _harm)


def _harm(setting: Setting, about: About) -> str:
    if setting["name"] == "NCCL_PROTO" and _chosen("LL128", setting["value"]):
        return "forces LL128: wrong data where the hardware does not support it"
    return about["harm"] if "risky_at" in about and is_at(setting["value"], about["risky_at"]) else ""


def _chosen(word: str, value: str) -> bool:
    """Whether a list names the word, and is none of what to leave out."""
    return any(word.lower() in one.lower().split(",") for one in lists(value) if not one.startswith("^"))


# -- tuning that NCCL does by itself -----------------------------------------------------------------------------------------


def forced(settings: Sequence[Setting]) -> Problems:
    """Tuning that NCCL would do by itself, and better with each release."""
    spoken_for = {*table()["noisy"], *table()["per_job"], "NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"}

    def judge(setting: Setting, about: About) -> str:
        return "" if setting["name"] in spoken_for or _harmless(setting["value"], about) else _not_for_keeps(about)

    return problems(settings, judge)


def _harmless(value: str, about: About) -> bool:
    """Whether it is the default, fine, or told by another judge."""
    fine = about.get("fine", [])
    others = [*about.get("lost_at", []), *about.get("risky_at", [])]
    return fine == "any" or is_at(value, [*fine, *others, about.get("default", "unset")])


def _not_for_keeps(about: About) -> str:
    if about["kind"] == "debugging":
        return f"the user guide keeps this for debugging; default: {about.get('default', 'unset')}"
    return "in no user guide: any release may change or drop it" if about["kind"] == "internal" else ""


# -- what belongs elsewhere --------------------------------------------------------------------------------------------------


def per_job(settings: Sequence[Setting]) -> Problems:
    """What belongs to one job and stands in a file for the whole node."""
    return problems(settings, lambda setting, _: str(table()["per_job"].get(setting["name"], "")))


def against_efa(settings: Sequence[Setting]) -> Problems:
    """Values in the way of those that the EFA plugin sets by itself."""
    defaults = table()["efa_defaults"]

    def judge(setting: Setting, _: About) -> str:
        wanted = defaults.get(setting["name"])
        if wanted is None or is_at(setting["value"], wanted):
            return ""
        return f"{setting['value']} keeps the EFA plugin from its own choice: {wanted}"

    return problems(settings, judge)


def has_efa(plugins: Iterable[str]) -> bool:
    """Whether one of the installed network plugins is aws-ofi-nccl."""
    return any("ofi" in path for path in plugins)
