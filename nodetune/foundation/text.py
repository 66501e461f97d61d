"""Format values for people, and read settings in nodetune's own files. Pure; standard library only."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from nodetune.foundation import by_key

_BINARY = ("", "KiB", "MiB", "GiB", "TiB", "PiB")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?|-")
_MAX_LENGTH = 400
_LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}:/{1,2})[^/\s\"'<>]*@", re.IGNORECASE)
_TOKEN = re.compile(
    r"([?&][^?=&\s\"']{0,40}?(?:token|secret|passw|key|sig)[^?=&\s\"']{0,40}=)[^&\s\"']+", re.IGNORECASE
)
MAX_NAMES = 12
SETTINGS = "# settings: "
"""Precedes the settings from which one of nodetune's files was made, as one line of JSON."""


def plain(text: Any, longest: int = _MAX_LENGTH) -> str:
    """Make text from a host safe to print: no control, escape, direction or surrogate characters, bounded length."""
    given = str(text)
    if len(given) <= longest and given.isprintable():
        return given
    cleaned = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", given[: longest + 1])
    return cleaned if len(cleaned) <= longest else cleaned[: longest - 1] + "…"


def without_logins(text: str) -> str:
    """Return text whose URLs have no user, password or token."""
    return _TOKEN.sub(r"\1…", _LOGIN.sub(r"\1…@", text))


def cell(text: Any) -> str:
    """Make text from a host safe as a cell of a table: no spreadsheet takes it for a formula."""
    shown = plain(text)
    starts = shown.lstrip()[:1]
    return f"'{shown}" if starts and starts in _FORMULA and not _NUMBER.fullmatch(shown) else shown


def size(number: int) -> str:
    """Format a number of bytes in binary units: exactly if possible, else with three digits."""
    amount: float = number
    for unit in _BINARY:
        if abs(amount) < 1024 or unit == _BINARY[-1]:
            break
        amount /= 1024
    three_digits = f"{amount:.0f}" if abs(amount) >= 999.5 else f"{amount:.3g}"
    return f"{three_digits} {unit}" if unit else f"{number} bytes"


_UNITS: dict[str, Callable[[Any], str]] = {
    "bytes": lambda number: size(int(number)),
    "KiB": lambda number: size(int(number) * 1024),
    "MiB": lambda number: size(int(number) << 20),
    "Mb/s": lambda number: f"{number / 1000:g} Gb/s" if number >= 1000 else f"{number:g} Mb/s",
    "mW": lambda number: f"{number / 1000:g} W",
}


_PLURAL = re.compile(r"\b(\w{3,}?)(ies|s)\b")
"""The noun of a unit: errors, cores per GPU."""


def value(item: Any, unit: str = "") -> str:
    """Format a value with its unit, on one line."""
    if item is None:
        return "none"
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, (int, float)):
        return _number(item, unit)
    if isinstance(item, Mapping):
        return ", ".join(f"{plain(key)} {value(each, unit)}" for key, each in item.items()) or "none"
    if isinstance(item, (list, tuple)):
        return " ".join(value(each, unit) for each in item) if item else "none"
    return plain(item)


def _number(item: float, unit: str) -> str:
    if unit in _UNITS:
        return _UNITS[unit](item)
    shown = str(item)
    if isinstance(item, float) and abs(item) < 1e15:  # without an exponent where it is large
        shown = f"{item:.0f}" if abs(item) >= 999_999.5 else f"{item:g}"
    return f"{shown} {_PLURAL.sub(_singular, unit, count=1) if item == 1 else unit}".strip()


def _singular(noun: re.Match[str]) -> str:
    return noun[1] + ("y" if noun[2] == "ies" else "")


def setting(item: Any, unit: str = "") -> str:
    """Format the value that a fix sets: a structure or several numbers as in their file, anything else like `value`."""
    if isinstance(item, Mapping):
        return plain(json.dumps(item))
    if isinstance(item, (list, tuple)):
        return " ".join(value(each) for each in item)
    return value(item, unit)


def own_settings(text: str) -> dict[str, Any]:
    """Read the settings line of one of nodetune's files; empty if the line is missing."""
    for line in text.splitlines():
        if line.startswith(SETTINGS):
            return json_object(line.removeprefix(SETTINGS))
    return {}


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object; empty for any other text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def folded(seen: Mapping[str, str]) -> str:
    """Group subjects by observed value: `GPU0-6: on · GPU7: off`. A value that is the subject's own name is left out."""
    groups = by_key(("" if text == subject else text, subject) for subject, text in seen.items())
    return " · ".join(f"{names(subjects)}: {text}" if text else names(subjects) for text, subjects in groups.items())


def names(subjects: Iterable[str]) -> str:
    """Fold runs of numbers in names: GPU0, GPU1, GPU2 → GPU0-2. Keep the order; fold numbers at the end only."""
    return _names(tuple(subjects))


@lru_cache(maxsize=64)  # many checks find the same of the same GPUs
def _names(subjects: tuple[str, ...]) -> str:
    out: list[tuple[str, int | None, int | None]] = []
    for subject in map(plain, subjects):
        found = re.fullmatch(r"(.*?)(0|[1-9]\d{0,8})", subject)
        if found is None:
            out.append((subject, None, None))
            continue
        stem, number = found[1], int(found[2])
        if out and out[-1][0] == stem and out[-1][2] == number - 1:
            out[-1] = (stem, out[-1][1], number)
        else:
            out.append((stem, number, number))
    shown = [_run(*each) for each in out]
    if len(shown) > MAX_NAMES:
        return f"{', '.join(shown[:MAX_NAMES])} and {len(shown) - MAX_NAMES} more"
    return ", ".join(shown)


def _run(stem: str, first: int | None, last: int | None) -> str:
    if first is None:
        return stem
    return f"{stem}{first}" if first == last else f"{stem}{first}-{last}"


def near(word: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that a user may have meant: those that contain the word, else similar ones."""
    known = list(names)
    within = [name for name in known if word and word in name]
    return sorted(within, key=lambda name: (len(name), name))[:most] or alike(word, known, most)


def alike(word: str, words: Iterable[str], most: int = 3, least: float = 0.6) -> list[str]:
    """Return similar words, the most similar first; `least` is the smallest similarity."""
    from difflib import get_close_matches  # here: it takes milliseconds, and only mistakes want it

    return get_close_matches(word, list(words), most, least)


_SPANS = (("days", 86400), ("h", 3600), ("min", 60), ("s", 1))


def span(seconds: float) -> str:
    """Format a time in its largest unit with a value of at least two."""
    for name, length in _SPANS:
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {name}"
    return f"{int(seconds)} s"


def count(number: int, word: str) -> str:
    """Format a number with its noun."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def sound_time(at: Any) -> int:
    """Return a Unix time in whole seconds; 0 for what no clock says: no number, before 1970 or after 2242."""
    return int(at) if isinstance(at, (int, float)) and not isinstance(at, bool) and 0 < at < 1 << 33 else 0


def day(at: float) -> str:
    """Return the day of a Unix time, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def whole(given: str) -> int | None:
    """Read a whole number of at most 18 digits; None for any other text."""
    return int(given) if re.fullmatch("-?[0-9]{1,18}", given) else None


def unread(problem: Exception) -> str:
    """Return why a number, or a document with numbers, cannot be read."""
    return (
        "Exceeds the limit: a number has too many digits"
        if "set_int_max_str_digits" in str(problem)
        else plain(problem, 120)
    )
