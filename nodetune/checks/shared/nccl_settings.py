"""Settings of NCCL: the lines of files that set one, those that NCCL does not read as intended, and which one wins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nodetune.api import FactsView
from nodetune.checks.shared.nccl_reading import number
from nodetune.checks.shared.nccl_table import About, release, variables

Setting = Mapping[str, Any]
"""One line of one file: name, value (None if the line has no =), file, line, raw and scope."""

Problems = dict[str, str]
"""Subject → its problem."""

CONF_SCOPES = ("home", "nccl.conf")
"""Files that NCCL itself reads."""

EVALUATED = ("profile", "task prolog", "container")
"""Where a shell or a similar program may compute the value."""


def subject(setting: Setting) -> str:
    return f"{setting['file']}:{setting['line']} {meant(setting)}"


def meant(setting: Setting) -> str:
    """Return the name that the author intended."""
    name = str(setting["name"]).strip(" \t\r\"'\ufeff")
    return re.sub(r"^(export|set|setenv)\s+", "", name) if setting["scope"] in CONF_SCOPES else name


def of_containers(facts: FactsView) -> str:
    """Return why a line may matter that nothing on the host itself needs; empty where no container engine is there."""
    engines = ", ".join(facts["containers.engines"])
    return f"a container of {engines} may bring another NCCL, or a plugin, that needs it" if engines else ""


# -- malformed lines of an nccl.conf: NCCL is not a shell and trims nothing ----------------------------------------------

MAX_LINE_LENGTH, MAX_VALUE_LENGTH = 4095, 1023


def malformed(settings: Sequence[Setting], version: str = "") -> Problems:
    """Return the problems of an nccl.conf's lines. `version` is the host's NCCL, or empty if unknown."""
    faults = {subject(setting): fault(setting, version) for setting in settings}
    return {name: text for name, text in faults.items() if text}


def fault(setting: Setting, version: str = "") -> str:
    """Return what is wrong with the line, or an empty string if it is correct or in another file."""
    if setting["scope"] not in CONF_SCOPES or str(setting["name"]).lstrip().startswith("#"):
        return ""
    if setting["value"] is None:
        return "no = in the line: NCCL ignores it"
    return _name_fault(setting) or _value_fault(setting) or _length_fault(setting) or _end_fault(setting, version)


def _name_fault(setting: Setting) -> str:
    name = str(setting["name"])
    if name == meant(setting):
        return ""
    if re.match(r"\s*(export|set|setenv)\s", name):
        return f"not a shell script: NCCL sets a variable called {name!r}; remove the first word"
    return f"blanks or quotes are part of the name: NCCL sets {name!r}, which nothing reads"


def _value_fault(setting: Setting) -> str:
    value = str(setting["value"])
    if value[:1] in ("'", '"'):
        return "the quotes are part of the value: remove them"
    if re.search(r"\s#", value):
        return "a # later in the line does not start a comment: it is part of the value"
    if value != value.strip(" \t"):
        return "leading or trailing blanks are part of the value: remove them"
    if "$" in value or value.startswith("~"):
        return "$NAME and ~ are not expanded here: write the value out"
    return ""


def _length_fault(setting: Setting) -> str:
    if len(str(setting["value"]).encode()) > MAX_VALUE_LENGTH:
        return f"the value is longer than {MAX_VALUE_LENGTH} bytes: NCCL truncates it"
    if len(str(setting["raw"]).encode()) > MAX_LINE_LENGTH:
        return f"the line is longer than {MAX_LINE_LENGTH} bytes: NCCL reads the rest as another line"
    return ""


def _end_fault(setting: Setting, version: str) -> str:
    """Report a carriage return. Before 2.30 it became part of words; numbers end before it."""
    ends_in_return = str(setting["raw"]).endswith("\r")
    if version and ends_in_return and release(version) < (2, 30) and number(str(setting["value"]))[1]:
        return f"a carriage return ends the line, and NCCL {version} may keep it as part of the value"
    return ""


# -- one test applied to every setting that takes effect -----------------------------------------------------------------

Judge = Callable[[Setting, About], str]
"""A setting and the table entry of its name → its problem, or an empty string."""


def problems(settings: Sequence[Setting], judge: Judge) -> Problems:
    """Return what `judge` reports of each setting that takes effect and is in the table."""
    entries, found = variables(), {}
    for setting in settings:
        about = entries.get(setting["name"])
        if about is not None and takes_effect(setting):
            text = judge(setting, about)
            if text:
                found[subject(setting)] = text
    return found


def takes_effect(setting: Setting) -> bool:
    """Return whether a program gets exactly this value: well-formed, not empty, not computed by a shell."""
    value = setting["value"]
    if not value or setting["name"] != meant(setting) or fault(setting):
        return False
    return setting["scope"] not in EVALUATED or not ("$" in value or "`" in value)


# -- which of several lines with the same name takes effect --------------------------------------------------------------

LOGIN_ORDER = ("nccl.conf", "home", "pam_env", "environment", "profile", "task prolog")
"""The sources of a login session's environment, in order: the later wins."""


def effective(settings: Sequence[Setting], name: str) -> Setting | None:
    """Return the setting of that name that wins in a login session."""
    candidates = [
        each for each in settings if each["name"] == name and each["scope"] in LOGIN_ORDER and takes_effect(each)
    ]
    return max(candidates, key=_rank, default=None)


def _rank(setting: Setting) -> tuple[int, str, int]:
    """Return the precedence. The environment wins over conf files; in those the first line wins."""
    first_wins = setting["scope"] in CONF_SCOPES
    return LOGIN_ORDER.index(setting["scope"]), setting["file"], -setting["line"] if first_wins else setting["line"]


def repeated(settings: Sequence[Setting]) -> Problems:
    """Return names that are set more than once, with the line that wins."""
    found: Problems = {}
    for same in _by_name(settings):
        winner = max(same, key=_rank)
        losers = [each for each in same if each is not winner and _clash(each, winner)]
        found.update((subject(each), _overridden(each, winner)) for each in losers)
    return found


def repeated_here(settings: Sequence[Setting]) -> set[str]:
    """Return the subjects that lose to a line of their own file: no program gets them."""
    files: dict[str, list[Setting]] = {}
    for setting in settings:
        files.setdefault(setting["file"], []).append(setting)
    return {line for lines in files.values() for line in repeated(lines)}


def _by_name(settings: Sequence[Setting]) -> Iterable[list[Setting]]:
    """Return the settings of login sessions, grouped by name."""
    names: dict[str, list[Setting]] = {}
    for setting in settings:
        if setting["value"] is not None and setting["scope"] in LOGIN_ORDER and setting["name"] == meant(setting):
            names.setdefault(setting["name"], []).append(setting)
    return names.values()


def _clash(loser: Setting, winner: Setting) -> bool:
    return bool(loser["file"] == winner["file"] or loser["value"] != winner["value"])


def _overridden(loser: Setting, winner: Setting) -> str:
    source = f"{winner['file']} line {winner['line']} sets {winner['value']}"
    return f"{loser['value']} has no effect: {source} ({_why(loser, winner)})"


def _why(loser: Setting, winner: Setting) -> str:
    if loser["file"] == winner["file"]:
        return "the first line counts here" if loser["scope"] in CONF_SCOPES else "the last line counts here"
    if loser["scope"] in CONF_SCOPES and winner["scope"] not in CONF_SCOPES:
        return "the environment wins over every conf file"
    if loser["scope"] == "nccl.conf":
        whose = ", for its user only" if winner["scope"] == "home" else ""
        return f"NCCL_CONF_FILE or ~/.nccl.conf wins over /etc/nccl.conf{whose}"
    return "it is applied later"
