"""What is wrong with a node's NCCL settings. Pure: settings and facts of the host in, {"file:line NAME": problem} out.

A setting is a mapping with name, value, file, line, raw and scope, as the `nccl` collector gives it. What NCCL and its
plugins read, and how, is data: data/nccl_env.yml.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

Setting = Mapping[str, Any]
Problems = dict[str, str]
Judge = Callable[[Setting, Mapping[str, Any]], str]

CONF_SCOPES = ("home", "nccl.conf")
EVALUATED = ("profile", "task prolog", "container")
LOGIN_ORDER = ("nccl.conf", "home", "pam_env", "environment", "profile", "task prolog")
ENGINES = ("service docker", "service containerd", "service kubelet", "service crio")
LONGEST_LINE, LONGEST_VALUE = 4095, 1023
LONGEST_NAME, MOST_DIGITS = 100, 40  # of what is looked at: longer ones come from no administrator
_NUMBER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_SUFFIX = re.compile(r"(\d+)\s*([kmg])i?b?", re.IGNORECASE)
_SHIFT = {"k": 10, "m": 20, "g": 30}


# -- the table -----------------------------------------------------------------------------------------------------------


@cache
def table() -> dict[str, Any]:
    """All that is known about names and values, read once."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (Path(__file__).parent / "data" / "nccl_env.yml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=loader)  # noqa: S506  (a safe loader, in C where there is one)
    return loaded


@cache
def variables() -> dict[str, dict[str, Any]]:
    """Name → what is known of it, with its component."""
    return {
        name: {**known, "component": component}
        for component, names in table()["variables"].items()
        for name, known in names.items()
    }


def release(text: str) -> tuple[int, ...]:
    """`2.21.5` → (2, 21, 5)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def newest(libraries: Iterable[Mapping[str, Any]]) -> str:
    """The newest NCCL release among the installed libraries; empty where none tells its release."""
    return max((str(each["version"]) for each in libraries if each.get("version")), key=release, default="")


def _since(known: Mapping[str, Any]) -> str:
    return min((known[key] for key in ("first", "guide") if key in known), key=release, default="")


# -- walking the settings ------------------------------------------------------------------------------------------------


def subject(setting: Setting) -> str:
    return f"{setting['file']}:{setting['line']} {_meant(setting)}"


def _meant(setting: Setting) -> str:
    """The name that the writer had in mind."""
    name = str(setting["name"]).strip(" \t\r\"'\ufeff")
    return re.sub(r"^(export|set|setenv)\s+", "", name) if setting["scope"] in CONF_SCOPES else name


def _takes_effect(setting: Setting) -> bool:
    """Whether a program gets this very value: not lost to syntax, not empty, not computed by a shell."""
    value = setting["value"]
    if not value or setting["name"] != _meant(setting) or _conf_fault(setting, ""):
        return False
    return setting["scope"] not in EVALUATED or not ("$" in value or "`" in value)


def problems(settings: Sequence[Setting], judge: Judge) -> Problems:
    """What `judge` says of each setting that takes effect and is in the table."""
    known, found = variables(), {}
    for setting in settings:
        about = known.get(setting["name"])
        if about is not None and _takes_effect(setting):
            text = judge(setting, about)
            if text:
                found[subject(setting)] = text
    return found


def number(value: str) -> tuple[int, str]:
    """What C's strtoll makes of it with base 0, and the rest that it leaves: `010` is 8, `4M` is 4 and leaves M."""
    found = _NUMBER.match(value)
    if not found:
        return 0, value
    digits = found[2]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    return int(found[1] + digits[:MOST_DIGITS], base), value[found.end() :]


def is_at(value: str, wanted: Any) -> bool:
    """Whether a value is (one of) the wanted: numbers as NCCL reads them, words without regard to case."""
    if isinstance(wanted, list):
        return any(is_at(value, one) for one in wanted)
    if isinstance(wanted, int):
        return bool(_NUMBER.match(value)) and number(value)[0] == wanted
    return value.lower() == str(wanted).lower()


# -- lines of nccl.conf --------------------------------------------------------------------------------------------------


def malformed(settings: Sequence[Setting], version: str = "") -> Problems:
    """Lines of an nccl.conf that do not mean what they look like."""
    found = {}
    for setting in settings:
        text = _conf_fault(setting, version)
        if text:
            found[subject(setting)] = text
    return found


def _conf_fault(setting: Setting, version: str) -> str:
    if setting["scope"] not in CONF_SCOPES or str(setting["name"]).lstrip().startswith("#"):
        return ""
    if setting["value"] is None:
        return "no = in the line: NCCL ignores it"
    return _name_fault(setting) or _value_fault(setting) or _line_fault(setting, version)


def _name_fault(setting: Setting) -> str:
    name = str(setting["name"])
    if name == _meant(setting):
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


def _line_fault(setting: Setting, version: str) -> str:
    raw, value = str(setting["raw"]), str(setting["value"])
    if len(value.encode()) > LONGEST_VALUE:
        return f"the value is longer than {LONGEST_VALUE} bytes: NCCL cuts it there"
    if len(raw.encode()) > LONGEST_LINE:
        return f"the line is longer than {LONGEST_LINE} bytes: NCCL takes the rest for another line"
    if version and raw.endswith("\r") and release(version) < (2, 30) and number(value)[1]:
        return f"a carriage return ends the line, and NCCL {version} may keep it as part of the value"
    return ""


# -- names ---------------------------------------------------------------------------------------------------------------


def unknown_names(settings: Sequence[Setting]) -> Problems:
    """Names that nothing reads: misspelt, or never there at all."""
    found = {}
    for setting in settings:
        text = _unknown(_meant(setting)) if setting["value"] is not None else ""
        if text and setting["name"] == _meant(setting):
            found[subject(setting)] = text
    return found


@lru_cache(4096)
def _unknown(name: str) -> str:
    about = variables().get(name)
    if about is not None:
        instead = about.get("instead")
        hint = f": use {instead}" if instead else ""
        return f"never existed in any release{hint}" if about["kind"] == "invented" else ""
    if name.upper() in variables():
        return f"names are upper case: {name.upper()}"
    ours = name.startswith("NCCL_") and not _of_others(name)
    near = get_close_matches(name[:LONGEST_NAME], variables(), 1, 0.8 if ours else 0.93)
    if not ours and not (near and name.startswith(("OFI_NCCL_", "SHARP_"))):
        return ""
    hint = f": did you mean {near[0]}?" if near else ""
    return f"nothing up to NCCL {table()['about']['newest']} reads this name{hint}"


def _of_others(name: str) -> bool:
    others = table()["others"]
    return name in others["names"] or name.startswith(tuple(others["prefixes"]))


def without_effect(settings: Sequence[Setting], version: str = "") -> Problems:
    """Known names that cannot do anything where they stand, or with the NCCL of this host."""
    found = problems(settings, lambda setting, about: _in_vain(setting["scope"], about, version))
    late = tuple(table()["too_late_in_conf"])
    for setting in settings:
        if setting["scope"] in CONF_SCOPES and setting["value"] and str(setting["name"]).startswith(late):
            found[subject(setting)] = "read before NCCL opens this file: set it in the environment of the job"
    return found


def _in_vain(scope: str, about: Mapping[str, Any], version: str) -> str:
    if scope in ENGINES:
        return f"containers do not inherit the environment of {scope.partition(' ')[2]}.service"
    if about["kind"] == "removed" and about["component"] != "nccl":
        return _instead("no longer read", about)
    if about["component"] != "nccl":
        return ""
    if about["kind"] == "removed" and release(version or table()["about"]["newest"]) > release(about["last"]):
        return _instead(f"no NCCL after {about['last']} reads it", about)
    since = _since(about)
    if version and about["kind"] != "removed" and since and release(version) < release(since):
        return f"NCCL {version} of this host does not know it: it came with {since}"
    return ""


def _instead(text: str, about: Mapping[str, Any]) -> str:
    return f"{text}: use {about['instead']}" if about.get("instead") else text


def obsolete(settings: Sequence[Setting]) -> Problems:
    """Names that still work but have a successor, and those that a plugin sets by itself."""

    def judge(_: Setting, about: Mapping[str, Any]) -> str:
        if about["kind"] == "superfluous":
            return f"superfluous: {about['note'].rstrip('.')}"
        return _instead("deprecated", about) if about["kind"] == "deprecated" else ""

    return problems(settings, judge)


# -- values --------------------------------------------------------------------------------------------------------------


def invalid_values(settings: Sequence[Setting]) -> Problems:
    """Values that are read as something else than what they look like, or not at all."""

    def judge(setting: Setting, about: Mapping[str, Any]) -> str:
        if about.get("type") == "path" and setting["value"].startswith("~") and setting["scope"] not in EVALUATED:
            return "~ is not expanded: write the path out"
        return _invalid(setting["name"], setting["value"])

    return {**problems(settings, judge), **_too_many_sockets(settings)}


@lru_cache(4096)
def _invalid(name: str, value: str) -> str:
    about = variables()[name]
    return _BY_TYPE.get(about.get("type", ""), _anything)(value, about)


def _anything(_: str, __: Mapping[str, Any]) -> str:
    return ""


def _bad_number(value: str, about: Mapping[str, Any]) -> str:
    got, rest = number(value)
    text = value.strip()
    if rest.strip():
        return _bad_rest(value, got, about)
    if re.match(r"[+-]?0\d", text) and got != int(text):
        return f"a leading 0 means octal: {text} is read as {got}; write {int(text)}"
    return _bad_size(got, about)


def _bad_rest(value: str, got: int, about: Mapping[str, Any]) -> str:
    sized = _SUFFIX.fullmatch(value.strip())
    hint = f": write {int(sized[1]) << _SHIFT[sized[2].lower()]}" if sized else ""
    if about["component"] in ("nccl", "nccl-rdma-sharp-plugins"):
        return f"NCCL reads {value!r} as {got}{hint}"
    return f"{value!r} is no number{hint}"


def _bad_size(got: int, about: Mapping[str, Any]) -> str:
    low, high = about.get("range", (None, None))
    multiple = about.get("multiple")
    if got in about.get("also", ()):
        return ""
    if multiple and got % multiple:
        return f"{got} is no multiple of {multiple}: NCCL ignores it and uses {about['default']}"
    if (low is not None and got < low) or (high is not None and got > high):
        return f"{got} is outside {low} to {high}" if high is not None else f"{got} is below {low}"
    if "values" in about and got not in about["values"]:
        return f"{got} is none of {', '.join(map(str, about['values']))}"
    return ""


def _bad_flag(value: str, _: Mapping[str, Any]) -> str:
    got, rest = number(value)
    if rest.strip():
        meant = {"true": 1, "yes": 1, "on": 1, "y": 1, "false": 0, "no": 0, "off": 0, "n": 0}.get(value.lower())
        return f"NCCL reads {value!r} as {got}" + ("" if meant in (None, got) else f": write {meant}")
    return "" if got in (0, 1) else f"{got} is neither 0 nor 1"


def _bad_switch(value: str, _: Mapping[str, Any]) -> str:
    known = ("0", "1", "y", "n", "t", "f", "yes", "no", "on", "off", "true", "false", "try", "auto")
    return "" if value.lower() in known else f"{value!r} is neither on nor off"


def _bad_word(value: str, about: Mapping[str, Any]) -> str:
    if value in about["values"] or (not about.get("exact") and value.lower() in _lower(tuple(about["values"]))):
        return ""
    return f"{value!r} is ignored: one of {', '.join(about['values'])} is known"


@cache
def _lower(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word.lower() for word in words)


def _bad_words(value: str, about: Mapping[str, Any]) -> str:
    return _strangers(value.split(","), about["values"], "is not known")


def _strangers(tokens: Iterable[str], known: Sequence[str], text: str) -> str:
    odd = [token for token in tokens if token.lstrip("^") and token.lstrip("^").lower() not in _lower(tuple(known))]
    return f"{', '.join(odd)} {text}: {', '.join(known)}" if odd else ""


def _bad_level(value: str, _: Mapping[str, Any]) -> str:
    levels = [*table()["levels"], "PORT"]
    if value in levels or value[0].isdigit():
        return ""
    hint = f": write {value.upper()}" if value.upper() in levels else f": one of {', '.join(table()['levels'])}"
    return f"{value!r} is ignored{hint}"


def _bad_choice(value: str, kind: str) -> str:
    lists = [part.rpartition(":")[2] for part in value.split(";")]
    return _strangers(
        (token for one in lists for token in one.split(",")), table()[kind], "makes NCCL 2.24 and newer fail"
    )


def _bad_range(value: str, _: Mapping[str, Any]) -> str:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return f"{value!r} is no network in CIDR form"
    return ""


def _matching(pattern: str, text: str) -> Callable[[str, Mapping[str, Any]], str]:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda value, _: "" if compiled.fullmatch(value) else f"{value!r} is no {text}"


_BY_TYPE: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "flag": _bad_flag,
    "switch": _bad_switch,
    "number": _bad_number,
    "bytes": _bad_number,
    "word": _bad_word,
    "words": _bad_words,
    "level": _bad_level,
    "algorithms": lambda value, _: _bad_choice(value, "algorithms"),
    "protocols": lambda value, _: _bad_choice(value, "protocols"),
    "cidr": _bad_range,
    "cpus": _matching(r"\d+(-\d+)?(,\d+(-\d+)?)*", "CPU list such as 0-3,8"),
    "address": _matching(r"(\[[0-9a-f:%]+\]|[^:\s]+):\d{1,5}", "host:port"),
    "policy": _matching(r"auto|all|max:\d+", "policy: AUTO, ALL or MAX:n"),
    "decimal": _matching(r"\d*\.?\d+", "positive number"),
}


def _effective(settings: Sequence[Setting], name: str) -> Setting | None:
    """The setting of that name that wins in a login session."""
    mine = [each for each in settings if each["name"] == name and each["scope"] in LOGIN_ORDER and _takes_effect(each)]
    return max(mine, key=_rank, default=None)


def _rank(setting: Setting) -> tuple[int, str, int]:
    """Where in the order of precedence: the environment wins over conf files; there the first line wins."""
    first_wins = setting["scope"] in CONF_SCOPES
    return LOGIN_ORDER.index(setting["scope"]), setting["file"], -setting["line"] if first_wins else setting["line"]


def _too_many_sockets(settings: Sequence[Setting]) -> Problems:
    threads, each = _effective(settings, "NCCL_SOCKET_NTHREADS"), _effective(settings, "NCCL_NSOCKS_PERTHREAD")
    if threads is None or each is None:
        return {}
    product = number(threads["value"])[0] * number(each["value"])[0]
    return {subject(each): f"times NCCL_SOCKET_NTHREADS that is {product} sockets: at most 64"} if product > 64 else {}


# -- what a value does ---------------------------------------------------------------------------------------------------


def noisy(settings: Sequence[Setting]) -> Problems:
    """Debugging that was left on."""

    def judge(setting: Setting, _: Mapping[str, Any]) -> str:
        name, value = setting["name"], setting["value"]
        if name == "NCCL_DEBUG_FILE" and not value.startswith("/dev/") and not ("%h" in value and "%p" in value):
            return f"every process writes over the same file: {value}.%h.%p"
        about = table()["noisy"].get(name)
        if about is None:
            return ""
        at = about["at"]
        on = any(is_at(token, at) for token in value.split(",")) if isinstance(at, list) else number(value)[0] >= at
        return f"{value} is left on: {about['keep']} is enough in production" if on else ""

    return problems(settings, judge)


def lost_paths(settings: Sequence[Setting], has: Mapping[str, bool]) -> Problems:
    """Fast paths that are switched off; `has` tells what the host has (rdma, efa), without which nothing is lost."""

    def judge(setting: Setting, about: Mapping[str, Any]) -> str:
        if "lost_at" not in about or not has.get(about.get("when", ""), "when" not in about):
            return ""
        return f"{setting['value']} gives up {about['loses']}" if is_at(setting["value"], about["lost_at"]) else ""

    return {**problems(settings, judge), **_no_adaptive_routing(settings)}


def _no_adaptive_routing(settings: Sequence[Setting]) -> Problems:
    threshold, buffers = _effective(settings, "NCCL_IB_AR_THRESHOLD"), _effective(settings, "NCCL_BUFFSIZE")
    size = number(buffers["value"])[0] if buffers else variables()["NCCL_BUFFSIZE"]["default"]
    if threshold is None or number(threshold["value"])[0] <= size:
        return {}
    return {subject(threshold): f"above the buffer size of {size}: gives up adaptive routing altogether"}


def unsafe(settings: Sequence[Setting]) -> Problems:
    """Values that can give wrong data, or hang a job."""

    def judge(setting: Setting, about: Mapping[str, Any]) -> str:
        if setting["name"] == "NCCL_PROTO" and _chosen("LL128", setting["value"]):
            return "forces LL128: wrong data where the hardware does not support it"
        return about["harm"] if "risky_at" in about and is_at(setting["value"], about["risky_at"]) else ""

    return problems(settings, judge)


def _chosen(word: str, value: str) -> bool:
    lists = [part.rpartition(":")[2].lower() for part in value.split(";")]
    return any(word.lower() in one.split(",") for one in lists if not one.startswith("^"))


def forced(settings: Sequence[Setting]) -> Problems:
    """Tuning that NCCL would do by itself, and better with each release."""
    spoken_for = {*table()["noisy"], *table()["per_job"], "NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"}

    def judge(setting: Setting, about: Mapping[str, Any]) -> str:
        value, fine = setting["value"], about.get("fine", [])
        others = [*about.get("lost_at", []), *about.get("risky_at", [])]
        if about["kind"] not in ("debugging", "internal") or setting["name"] in spoken_for:
            return ""
        if fine == "any" or is_at(value, [*fine, *others, about.get("default", "unset")]):
            return ""
        if about["kind"] == "debugging":
            return f"the user guide keeps this for debugging; default: {about.get('default', 'unset')}"
        return "in no user guide: any release may change or drop it"

    return problems(settings, judge)


def per_job(settings: Sequence[Setting]) -> Problems:
    """What belongs to one job and stands in a file for the whole node."""
    return problems(settings, lambda setting, _: str(table()["per_job"].get(setting["name"], "")))


def repeated(settings: Sequence[Setting]) -> Problems:
    """Names that are set more than once: which line wins, and which is in vain."""
    found: Problems = {}
    by_name: dict[str, list[Setting]] = {}
    for setting in settings:
        if setting["value"] is not None and setting["scope"] in LOGIN_ORDER and setting["name"] == _meant(setting):
            by_name.setdefault(setting["name"], []).append(setting)
    for same in by_name.values():
        if len(same) > 1:
            winner = max(same, key=_rank)
            found.update(
                (subject(each), _beaten(each, winner)) for each in same if each is not winner and _clash(each, winner)
            )
    return found


def _clash(loser: Setting, winner: Setting) -> bool:
    return bool(loser["file"] == winner["file"] or loser["value"] != winner["value"])


def _beaten(loser: Setting, winner: Setting) -> str:
    if loser["file"] == winner["file"]:
        why = "the first line counts here" if loser["scope"] in CONF_SCOPES else "the last line counts here"
    elif loser["scope"] in CONF_SCOPES and winner["scope"] not in CONF_SCOPES:
        why = "the environment wins over every conf file"
    elif loser["scope"] == "nccl.conf":
        why = "NCCL_CONF_FILE or ~/.nccl.conf wins over /etc/nccl.conf"
    else:
        why = "it is applied later"
    return f"{loser['value']} is in vain: {winner['file']} line {winner['line']} sets {winner['value']} ({why})"


# -- choosing interfaces and adapters --------------------------------------------------------------------------------------


class Selection:
    """`^=a,b:1`: ^ (all but) and = (exact names) count only at the start, in that order, and then for every token."""

    def __init__(self, value: str) -> None:
        self.excludes = value.startswith("^")
        rest = value[1:] if self.excludes else value
        self.exact = rest.startswith("=")
        self.tokens = [token for token in rest[1 if self.exact else 0 :].split(",") if token]

    def matches(self, token: str, name: str) -> bool:
        wanted = token.partition(":")[0]
        return name == wanted if self.exact else name.startswith(wanted)

    def misplaced(self) -> list[str]:
        """Tokens whose ^ or = is too late to mean anything, or that begin or end with a blank."""
        return [token for token in self.tokens if token[0] in "^=" or token != token.strip()]

    def too_wide(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Tokens that are the name of one thing and the beginning of others' names too."""
        names = list(names)
        wide = {token: [name for name in names if self.matches(token, name)] for token in self.tokens}
        return {token: hits for token, hits in wide.items() if len(hits) > 1 and token.partition(":")[0] in names}

    def selected(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if any(self.matches(token, name) for token in self.tokens) != self.excludes]


def _shape(value: str, selection: Selection) -> str:
    if len(value) == 1:
        return f"NCCL ignores a value of one character ({value!r})"
    odd = selection.misplaced()
    return f"{', '.join(odd)} is taken literally: ^ and = count only at the very start of the value" if odd else ""


def interfaces(settings: Sequence[Setting], links: Mapping[str, Any]) -> Problems:
    """NCCL_SOCKET_IFNAME and its like, held against the links of this host."""
    names = [name for name in links if "@" not in name]

    def judge(setting: Setting, about: Mapping[str, Any]) -> str:
        if about.get("type") != "interfaces" or (
            setting["name"] == "NCCL_OOB_NET_IFNAME" and not _socket_net(settings)
        ):
            return ""
        selection = Selection(setting["value"])
        return _shape(setting["value"], selection) or _links_fault(selection, names, links)

    return problems(settings, judge)


def _socket_net(settings: Sequence[Setting]) -> bool:
    """Whether out-of-band names are those of links: only then is NCCL_NET=Socket."""
    chosen = _effective(settings, "NCCL_NET")
    return chosen is not None and chosen["value"].lower() == "socket"


def _links_fault(selection: Selection, names: list[str], links: Mapping[str, Any]) -> str:
    chosen = selection.selected(names)
    if selection.excludes:
        left = [name for name in chosen if name == "lo" or name.startswith(("docker", "virbr"))]
        return f"leaves {', '.join(left)} in: NCCL avoids them only where nothing is set; add them" if left else ""
    strange = [token for token in selection.tokens if not any(selection.matches(token, name) for name in names)]
    if strange:
        return f"no interface of this host matches {', '.join(strange)}" + ("" if chosen else ": NCCL fails to start")
    wide = selection.too_wide(names)
    if wide:
        return _narrower(wide, selection)
    down = [name for name in chosen if links[name].get("up") is False]
    return f"{', '.join(down)} is down" if down and len(down) == len(chosen) else ""


def _narrower(wide: Mapping[str, list[str]], selection: Selection) -> str:
    said = "; ".join(
        f"{token} also means {', '.join(name for name in hits if name != token)}" for token, hits in wide.items()
    )
    return f"{said}: exact names are {'^' if selection.excludes else ''}={','.join(selection.tokens)}"


def adapters(settings: Sequence[Setting], ports: Mapping[str, Any]) -> Problems:
    """NCCL_IB_HCA and UCX_NET_DEVICES, held against the RDMA ports of this host ("mlx5_0/1" → its state)."""
    devices = sorted({name.partition("/")[0] for name in ports})

    def judge(setting: Setting, about: Mapping[str, Any]) -> str:
        value = setting["value"]
        if about.get("type") == "ucx_devices":
            odd = [token for token in value.split(",") if ":" in token and token.replace(":", "/") not in ports]
            return f"this host has no {', '.join(odd)}" if odd and ports else ""
        if about.get("type") != "hcas":
            return ""
        selection = Selection(value)
        return _shape(value, selection) or _ports_fault(selection, devices, ports)

    return problems(settings, judge)


def _ports_fault(selection: Selection, devices: list[str], ports: Mapping[str, Any]) -> str:
    strange = [token for token in selection.tokens if not any(_meets(selection, token, name) for name in ports)]
    if strange:
        return f"no RDMA port of this host matches {', '.join(strange)}"
    wide = selection.too_wide(devices)
    if wide:
        return _narrower(wide, selection)
    chosen = [
        name
        for name in ports
        if any(_meets(selection, token, name) for token in selection.tokens) != selection.excludes
    ]
    if not chosen:
        return "leaves no RDMA port over: NCCL falls back to TCP"
    return _mixture({name: ports[name] for name in chosen}, excludes=selection.excludes)


def _meets(selection: Selection, token: str, port: str) -> bool:
    device, _, port_number = port.partition("/")
    wanted = token.split(":")[1] if ":" in token else ""
    return selection.matches(token, device) and wanted in ("", port_number)


def _mixture(chosen: Mapping[str, Any], *, excludes: bool) -> str:
    active = {name: port for name, port in chosen.items() if port.get("state") == "ACTIVE"}
    dead = sorted(chosen.keys() - active.keys())
    if dead and not excludes:
        return f"{', '.join(dead)} is not active: NCCL leaves it out"
    layers = {port.get("link_layer") for port in active.values()}
    if len(layers) > 1:
        return f"takes {' and '.join(sorted(map(str, layers)))} ports together: they cannot reach each other"
    fastest = max((port.get("rate_gbps") or 0 for port in active.values()), default=0)
    slow = sorted(name for name, port in active.items() if (port.get("rate_gbps") or fastest) * 2 < fastest)
    return f"takes slow ports in: {', '.join(slow)} beside ports of {fastest:g} Gb/s" if slow else ""


# -- EFA -----------------------------------------------------------------------------------------------------------------


def against_efa(settings: Sequence[Setting]) -> Problems:
    """Values in the way of those that the EFA plugin sets by itself."""
    defaults = table()["efa_defaults"]

    def judge(setting: Setting, _: Mapping[str, Any]) -> str:
        wanted = defaults.get(setting["name"])
        if wanted is None or is_at(setting["value"], wanted):
            return ""
        return f"{setting['value']} keeps the EFA plugin from its own choice: {wanted}"

    return problems(settings, judge)


def has_efa(plugins: Iterable[str]) -> bool:
    """Whether one of the installed network plugins is aws-ofi-nccl."""
    return any("ofi" in path for path in plugins)
