"""Lines of an nccl.conf that do not mean what they look like: NCCL is no shell and trims nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nodetune.nccl.reading import number
from nodetune.nccl.releases import release
from nodetune.nccl.settings import CONF_SCOPES, Problems, Setting, meant, subject

LONGEST_LINE, LONGEST_VALUE = 4095, 1023


def malformed(settings: Sequence[Setting], version: str = "") -> Problems:
    """What is wrong with lines of an nccl.conf; `version` is the host's NCCL, empty where unknown."""
    faults = {subject(setting): fault(setting, version) for setting in settings}
    return {name: text for name, text in faults.items() if text}


def fault(setting: Setting, version: str = "") -> str:
    """What is wrong with the line; empty for a good one and for lines of other files."""
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
        return f"this is no shell: NCCL sets a variable called {name!r}; take the first word away"
    return f"blanks or quotes are part of the name: NCCL sets {name!r}, which nobody reads"


def _value_fault(setting: Setting) -> str:
    value = str(setting["value"])
    if value[:1] in ("'", '"'):
        return "the quotes are part of the value: take them away"
    if re.search(r"\s#", value):
        return "a # later in the line starts no comment: it is part of the value"
    if value != value.strip(" \t"):
        return "blanks at the ends are part of the value: take them away"
    if "$" in value or value.startswith("~"):
        return "nothing is expanded here: write the value out ($NAME and ~ stay as they are)"
    return ""


def _length_fault(setting: Setting) -> str:
    if len(str(setting["value"]).encode()) > LONGEST_VALUE:
        return f"the value is longer than {LONGEST_VALUE} bytes: NCCL cuts it there"
    if len(str(setting["raw"]).encode()) > LONGEST_LINE:
        return f"the line is longer than {LONGEST_LINE} bytes: NCCL takes the rest for another line"
    return ""


def _end_fault(setting: Setting, version: str) -> str:
    """Before 2.30 a carriage return became part of words; numbers end before it."""
    ends_in_return = str(setting["raw"]).endswith("\r")
    if version and ends_in_return and release(version) < (2, 30) and number(str(setting["value"]))[1]:
        return f"a carriage return ends the line, and NCCL {version} may keep it as part of the value"
    return ""
