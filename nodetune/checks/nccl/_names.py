"""Names that are unknown, that the NCCL of this host does not read, or that are deprecated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nodetune.checks.shared.nccl_settings import CONF_SCOPES, Problems, Setting, meant, problems, subject
from nodetune.checks.shared.nccl_table import About, release, since, table, variables
from nodetune.foundation.text import alike

ENGINES = ("service docker", "service containerd", "service kubelet", "service crio")
MAX_NAME_LENGTH = 100  # longer names are cut before comparison: no administrator writes them


def unknown(settings: Sequence[Setting]) -> Problems:
    """Return names that nothing reads: misspelt, or never in any release."""
    written = [each for each in settings if each["value"] is not None and each["name"] == meant(each)]
    faults = {subject(setting): _unknown(setting["name"]) for setting in written}
    return {name: text for name, text in faults.items() if text}


@lru_cache(4096)
def _unknown(name: str) -> str:
    about = variables().get(name)
    if about is not None:
        return _instead("never existed in any release", about) if about["kind"] == "invented" else ""
    if name.upper() in variables():
        return f"names are upper case: {name.upper()}"
    return _unread(name)


def _unread(name: str) -> str:
    """Return the problem of a name in no table. Without NCCL's own prefix it must be close to a name in the table."""
    own = name.startswith("NCCL_") and not _of_others(name)
    near = alike(name[:MAX_NAME_LENGTH], variables(), 1, 0.8 if own else 0.93)
    if not own and not (near and name.startswith(("OFI_NCCL_", "SHARP_"))):
        return ""
    hint = f": did you mean {near[0]}?" if near else ""
    return f"nothing up to NCCL {table()['about']['newest']} reads this name{hint}"


def _of_others(name: str) -> bool:
    others = table()["others"]
    return name in others["names"] or name.startswith(tuple(others["prefixes"]))


def without_effect(settings: Sequence[Setting], version: str = "") -> Problems:
    """Return names that have no effect in their file, or with the NCCL of this host."""
    return {**problems(settings, lambda setting, about: _ineffective(setting, about, version)), **_too_late(settings)}


def _too_late(settings: Sequence[Setting]) -> Problems:
    late = tuple(table()["too_late_in_conf"])
    return {
        subject(setting): "NCCL reads it before it opens this file: set it in the environment of the job"
        for setting in settings
        if setting["scope"] in CONF_SCOPES and setting["value"] and str(setting["name"]).startswith(late)
    }


def _ineffective(setting: Setting, about: About, version: str) -> str:
    if setting["scope"] in ENGINES:
        return f"containers do not inherit the environment of {setting['scope'].partition(' ')[2]}.service"
    if about["kind"] == "removed":
        return _removed(about, version)
    return _too_new(about, version) if about["component"] == "nccl" else ""


def _removed(about: About, version: str) -> str:
    if about["component"] != "nccl":
        return _instead("no longer read", about)
    gone = release(version or table()["about"]["newest"]) > release(about["last"])
    return _instead(f"no NCCL after {about['last']} reads it", about) if gone else ""


def _too_new(about: About, version: str) -> str:
    first = since(about)
    if version and first and release(version) < release(first):
        return f"NCCL {version} of this host does not support it: added in {first}"
    return ""


def obsolete(settings: Sequence[Setting]) -> Problems:
    """Return names that still work but have a successor, and those that a plugin sets by itself."""
    return problems(settings, lambda _, about: _deprecated(about))


def _deprecated(about: About) -> str:
    if about["kind"] == "superfluous":
        return f"superfluous: {about['note'].rstrip('.')}"
    return _instead("deprecated", about) if about["kind"] == "deprecated" else ""


def _instead(text: str, about: About) -> str:
    return f"{text}: use {about['instead']}" if about.get("instead") else text
