"""Values that NCCL ignores or does not read as intended."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache

from nodetune.checks.shared.nccl_reading import lists, number
from nodetune.checks.shared.nccl_settings import EVALUATED, Problems, Setting, effective, problems, subject
from nodetune.checks.shared.nccl_table import About, table, variables

MAX_SOCKETS = 64
_SUFFIX = re.compile(r"(\d+)\s*([kmg])i?b?", re.IGNORECASE)
_SHIFT = {"k": 10, "m": 20, "g": 30}
_READ_BY_C = ("nccl", "nccl-rdma-sharp-plugins")
_ON, _OFF = ("true", "yes", "on", "y"), ("false", "no", "off", "n")
_SWITCHES = ("0", "1", *_ON, *_OFF, "t", "f", "try", "auto")


def invalid(settings: Sequence[Setting]) -> Problems:
    return {**problems(settings, _judge), **_too_many_sockets(settings)}


def _judge(setting: Setting, about: About) -> str:
    if about.get("type") == "path" and setting["value"].startswith("~") and setting["scope"] not in EVALUATED:
        return "~ is not expanded: write the path out"
    return _invalid(setting["name"], setting["value"])


@lru_cache(4096)
def _invalid(name: str, value: str) -> str:
    about = variables()[name]
    judge = BY_TYPE.get(about.get("type", ""))
    return judge(value, about) if judge else ""


def default_is_right(setting: Setting, about: About) -> bool:
    """Return whether the default is what is wanted instead of an invalid value.

    So it is of tuning that belongs to NCCL, and of a value that NCCL ignores or reads as the default: nothing changes then.
    """
    got, multiple = number(setting["value"])[0], about.get("multiple")
    ignored = about.get("type") in ("word", "level") or bool(multiple and got % multiple) or got == about.get("default")
    return about["component"] == "nccl" and (ignored or about["kind"] in ("debugging", "internal"))


def _too_many_sockets(settings: Sequence[Setting]) -> Problems:
    threads, each = effective(settings, "NCCL_SOCKET_NTHREADS"), effective(settings, "NCCL_NSOCKS_PERTHREAD")
    if threads is None or each is None:
        return {}
    sockets = number(threads["value"])[0] * number(each["value"])[0]
    text = f"multiplied by NCCL_SOCKET_NTHREADS this is {sockets} sockets: at most {MAX_SOCKETS}"
    return {subject(each): text} if sockets > MAX_SOCKETS else {}


# -- numbers -------------------------------------------------------------------------------------------------------------


def _bad_number(value: str, about: About) -> str:
    got, rest = number(value)
    text = value.strip()
    if rest.strip():
        return _bad_rest(value, got, about)
    if re.match(r"[+-]?0\d", text) and got != int(text):
        return f"a leading 0 means octal: {text} is read as {got}; write {int(text)}"
    return _bad_size(got, about)


def _bad_rest(value: str, got: int, about: About) -> str:
    sized = _SUFFIX.fullmatch(value.strip())
    hint = f": write {int(sized[1]) << _SHIFT[sized[2].lower()]}" if sized else ""
    return (
        f"NCCL reads {value!r} as {got}{hint}"
        if about["component"] in _READ_BY_C
        else f"{value!r} is not a number{hint}"
    )


def _bad_size(got: int, about: About) -> str:
    multiple = about.get("multiple")
    if got in about.get("also", ()):
        return ""
    if multiple and got % multiple:
        return f"{got} is not a multiple of {multiple}: NCCL ignores it and uses {about['default']}"
    return _out_of_range(got, about) or _unlisted(got, about)


def _out_of_range(got: int, about: About) -> str:
    low, high = about.get("range", (None, None))
    if (low is None or got >= low) and (high is None or got <= high):
        return ""
    return f"{got} is outside {low} to {high}" if high is not None else f"{got} is below {low}"


def _unlisted(got: int, about: About) -> str:
    listed = got in about.get("values", [got])
    return "" if listed else f"{got} is not one of {', '.join(map(str, about['values']))}"


def _bad_flag(value: str, _: About) -> str:
    got, rest = number(value)
    if rest.strip():
        intended = _intended(value.lower())
        return f"NCCL reads {value!r} as {got}" + ("" if intended in (None, got) else f": write {intended}")
    return "" if got in (0, 1) else f"{got} is neither 0 nor 1"


def _intended(word: str) -> int | None:
    return 1 if word in _ON else 0 if word in _OFF else None


# -- words ---------------------------------------------------------------------------------------------------------------


def _bad_switch(value: str, _: About) -> str:
    return "" if value.lower() in _SWITCHES else f"{value!r} is neither on nor off"


def _bad_word(value: str, about: About) -> str:
    if value in about["values"] or (not about.get("exact") and value.lower() in _lower(tuple(about["values"]))):
        return ""
    return f"{value!r} is ignored: use one of {', '.join(about['values'])}"


def _bad_words(value: str, about: About) -> str:
    return _unlisted_words(value.split(","), about["values"], "is unknown")


def _bad_choice(value: str, kind: str) -> str:
    tokens = [token for one in lists(value) for token in one.split(",")]
    return _unlisted_words(tokens, table()[kind], "makes NCCL 2.24 and newer fail")


def _unlisted_words(tokens: Iterable[str], allowed: Sequence[str], text: str) -> str:
    odd = [token for token in tokens if token.lstrip("^") and token.lstrip("^").lower() not in _lower(tuple(allowed))]
    return f"{', '.join(odd)} {text}: use {', '.join(allowed)}" if odd else ""


@cache
def _lower(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word.lower() for word in words)


def _bad_level(value: str, _: About) -> str:
    levels = [*table()["levels"], "PORT"]
    if value in levels or value[0].isdigit():
        return ""
    hint = f": write {value.upper()}" if value.upper() in levels else f": use one of {', '.join(table()['levels'])}"
    return f"{value!r} is ignored{hint}"


# -- forms ---------------------------------------------------------------------------------------------------------------


def _bad_network(value: str, _: About) -> str:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return f"{value!r} is not a network in CIDR notation"
    return ""


def _matching(pattern: str, text: str) -> Callable[[str, About], str]:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda value, _: "" if compiled.fullmatch(value) else f"{value!r} is not a {text}"


BY_TYPE: dict[str, Callable[[str, About], str]] = {
    "flag": _bad_flag,
    "switch": _bad_switch,
    "number": _bad_number,
    "bytes": _bad_number,
    "word": _bad_word,
    "words": _bad_words,
    "level": _bad_level,
    "algorithms": lambda value, _: _bad_choice(value, "algorithms"),
    "protocols": lambda value, _: _bad_choice(value, "protocols"),
    "cidr": _bad_network,
    "cpus": _matching(r"\d+(-\d+)?(,\d+(-\d+)?)*", "CPU list such as 0-3,8"),
    "address": _matching(r"(\[[0-9a-f:%]+\]|[^:\s]+):\d{1,5}", "host:port"),
    "policy": _matching(r"auto|all|max:\d+", "policy: AUTO, ALL or MAX:n"),
    "decimal": _matching(r"\d*\.?\d+", "positive number"),
}
"""Type in the table → function that validates its values. Other modules check the other types, or any value is valid."""
