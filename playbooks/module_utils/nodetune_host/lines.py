"""The lines of a journal: each an entry with a checksum."""

import hashlib
import json

SHAPES = (
    {"run", "since", "machine", "boot"},
    {"n", "group", "change", "checks", "before", "after"},
    {"n", "ok"},
    {"n", "done", "problem"},
    {"group", "hook"},
    {"hook_done"},
    {"hook_done", "problem"},
    {"ended"},
)
"""The entries of the version without checksums."""

KINDS = {"run": str, "since": (int, float), "machine": str, "of": str, "n": int, "group": str, "change": dict}
KINDS.update({"checks": list, "place": str, "hook": dict, "hook_done": str, "ended": int})
WITH = {"change": {"n", "group", "before", "after"}, "ok": {"n"}, "done": {"n"}, "hook": {"group"}, "since": {"run"}}
NAMED = {"change": "change", "hook": "run"}
"""The kinds of members, the members that others need, and what names the two that are objects."""


def parsed_line(line, chain):
    """Return (the entry of a line, or None if it is damaged or follows another one, the chain after it)."""
    try:
        entry = json.loads(line.decode("ascii"))
        told = entry.pop("sum", None)
        known = set(entry) in SHAPES if told is None else told in (checksum(entry, chain), checksum(entry))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None, chain
    return (entry, told or chain) if known and is_sound(entry) else (None, chain)


def checksum(entry, chain=""):
    return hashlib.sha256((chain + json.dumps(entry, sort_keys=True)).encode("ascii")).hexdigest()[:16]


def is_sound(entry):
    """Return whether an entry has the members that it needs, of the right kind."""
    right = all(isinstance(entry[name], kind) for name, kind in KINDS.items() if name in entry)
    whole = all(needed <= set(entry) for name, needed in WITH.items() if name in entry)
    named = right and all(isinstance(entry[name].get(key), str) for name, key in NAMED.items() if name in entry)
    return whole and named


def gap(entries):
    """Return the place of the first entry before which some are missing; None if no number is missing."""
    due = None
    for place, entry in enumerate(entries):
        number = entry.get("n")
        if "change" in entry:
            if due is not None and number > due:
                return place
            due = number + 1
        elif number is not None and (due is None or number >= due):
            return place
    return None
