"""Names that are unknown, that the NCCL of this host does not read, or that are deprecated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nodetune.checks.shared.nccl_settings import CONF_SCOPES, Problems, Setting, meant, problems, subject
from nodetune.checks.shared.nccl_table import About, release, since, table, variables
from nodetune.foundation.text import alike

ENGINES = ("service docker", "service containerd", "service kubelet", "service crio")
MAX_NAME_LENGTH = 100  # longer names are cut before comparison: no administrator writes them


def unknown(settings: Sequence[Setting], settled: bool = True) -> Problems:
    """Return names that nothing reads: misspelt, or never in any release.

    If not `settled`, no NCCL of the host settles what a newer release than the table's may read: only names that are close to a
    known one are misspelt.
    """
    written = [each for each in settings if each["value"] is not None and each["name"] == meant(each)]
    faults = {subject(setting): _unknown(setting["name"], settled) for setting in written}
    return {name: text for name, text in faults.items() if text}


@lru_cache(4096)
def _unknown(name: str, settled: bool) -> str:
    about = variables().get(name)
    if about is not None:
        return _instead("never existed in any release", about) if about["kind"] == "invented" else ""
    if name.upper() in variables():
        return f"names are upper case: {name.upper()}"
    return _unread(name, settled)


def _unread(name: str, settled: bool) -> str:
    """Return the problem of a name in no table. Without NCCL's own prefix it must be close to a name in the table."""
    own, short = name.startswith("NCCL_") and not _of_others(name), name[:MAX_NAME_LENGTH]
    near = [known for known in variables() if own and misspells(short, known)]
    if not own or (settled and not near):
        near = alike(short, variables(), 1, 0.8 if own else 0.93)
        if not own and not (near and name.startswith(("OFI_NCCL_", "SHARP_"))):
            return ""
    hint = f": did you mean {near[0]}?" if near else ""
    return f"nothing up to NCCL {table()['about']['newest']} reads this name{hint}" if settled or near else ""


def misspells(name: str, known: str) -> bool:
    """Return whether a name differs from a known one by a slip: another order, an underscore, or letters of one word.

    Releases add names that differ by a whole word, and of two or three letters it may be any: GIN next to WIN, NVB next to IB.
    """
    words, others = name.split("_"), known.split("_")
    if sorted(words) == sorted(others) or "".join(words) == "".join(others):
        return True
    odd = [pair for pair in zip(words, others) if pair[0] != pair[1]]
    if len(words) != len(others) or len(odd) != 1:
        return False
    (one, other), slips = odd[0], 2 if min(map(len, odd[0])) > 4 else 1
    exchanged = len(one) == len(other) < 4 and sorted(one) != sorted(other)
    return not exchanged and abs(len(one) - len(other)) <= slips and _slips(one, other) <= slips


def _slips(one: str, other: str) -> int:
    """Return how many letters were left out, added, replaced, or swapped with the next one."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            swapped = rows[-2][j - 2] if i > 1 < j and (letter, one[i - 2]) == (other[j - 2], wanted) else len(one)
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted), swapped + 1))
        rows.append(row)
    return rows[-1][-1]


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
