"""Settings in slurm.conf: {"path", "settings": {name: text, or a list of words that must be included}}.

Ours are between two marks at the end. A line of the same name elsewhere is taken over if it already has the wanted
value or if words are added to it: it becomes a comment that says so. A program that others set is never removed:
that raises ChangeError. No settings: our lines are removed, and lines that were taken over are restored byte for byte.
The state is the whole file, as for `file`.
"""

import re

from ..problem import ChangeError
from . import file
from .file import about, label, put, read, same, show

BEGIN = "# nodetune guard: begin (nodetune guard uninstall takes it out)\n"
END = "# nodetune guard: end\n"
TAKEN = "# nodetune guard took over: "
NO_NEWLINE = "# nodetune guard: the last line had no end\n"


def wanted(change, now):
    if now["content"] is None:
        if change["settings"]:
            raise ChangeError("it does not exist: on which host is slurm.conf edited?")
        return now
    try:
        return file.edited(now, lambda text: with_settings(without(text), change["settings"]))
    except ValueError as problem:
        raise ChangeError(str(problem)) from None


def without(text):
    """Return the text without our lines. Raise ValueError if one of our marks is missing."""
    if (BEGIN in text) != (END in text):
        raise ValueError(f"has only one of the two marks {BEGIN.strip()!r} and {END.strip()!r}: fix it first")
    if BEGIN in text:
        head, _, rest = text.partition(BEGIN)
        ours, _, tail = rest.partition(END)
        text = (head[:-1] if NO_NEWLINE in ours else head) + tail
    return re.sub("^" + re.escape(TAKEN), "", text, flags=re.MULTILINE)


def with_settings(text, settings):
    """Return the text with our lines. Raise ValueError if another line conflicts."""
    if not settings:
        return text
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    ours = []
    for name, value in settings.items():
        found = [number for number, line in enumerate(lines) if _value(line, name) is not None]
        present = [_value(lines[number], name) for number in found]
        merged = _merged(name, present[-1] if present else "", value)
        if merged is None:
            continue
        for number in found:
            lines[number] = TAKEN + lines[number]
        ours.append(f"{name}={merged}\n")
    if not ours:
        return text
    torn = bool(lines) and not lines[-1].endswith("\n")
    return "".join(lines) + ("\n" if torn else "") + BEGIN + (NO_NEWLINE if torn else "") + "".join(ours) + END


def _value(line, name):
    """Return the value of `name` in a line, or None."""
    found = re.match(rf'\s*{name}\s*=\s*(?:"([^"]*)"|([^#]*))', line, re.IGNORECASE)
    return None if not found else (found[1] if found[1] is not None else found[2]).strip()


def _merged(name, present, value):
    """Return what to write, or None if the current text suffices."""
    if isinstance(value, list):
        words = [word.strip() for word in present.split(",") if word.strip()]
        known = {word.lower() for word in words}
        missing = [word for word in value if word.lower() not in known]
        return ",".join([*words, *missing]) if missing else None
    if not present or present == "0" or present.lower() == "(null)":
        return value
    if present == value or not value.startswith("/"):
        return None
    raise ValueError(f"{name}={present} is set: make it call {value} or remove it, then install again")
