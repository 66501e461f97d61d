"""Fact documents: JSON ↔ HostFacts. Data from a host is untrusted: a value of the wrong shape becomes `Unread`.

A fact without a shape, which a newer probe may send, passes within bounds.
"""

import json
import math
import re
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, NoReturn

from nodetune.api.model import Absent, Each, Fact, HostFacts, Unread, Value
from nodetune.facts import catalogue
from nodetune.facts.memo import InternPool
from nodetune.facts.shapes import ANYTHING, MAX_MEMBERS, Shape
from nodetune.foundation import UserError, file_io
from nodetune.foundation import text as plain_text
from nodetune.onhost import layout

SCHEMA = "nodetune.facts/1"
LARGEST_FILE = 64 << 20
MAX_NAME_LENGTH = 100
"""Bytes of a host's name in a file name; file systems allow 255 for the whole name."""
FORMS = InternPool()
"""Memo that makes equal facts of many hosts one object."""
NO_VALUE = ("n/a", "not supported", "not available")
OF_PAIRS = "gpu.p2p"

Single = Value | Absent | Unread
Asked = Container[str] | None


class FactsError(UserError):
    """An invalid fact document; the text says what and where."""


class ForeignError(FactsError):
    """No fact document at all, and no part of one."""


def read(text: bytes, where: str, host: str = "", unnamed: str = "unnamed", asked: Asked = None) -> HostFacts:
    """Read what was `asked` of `host`, else of the host that the document names, else of `unnamed`. Raise FactsError."""
    found = _by_lines(text, asked)
    data = None if found else parse(text, where)
    try:
        return _described(*found, host, unnamed) if found else from_data(data, host, unnamed, asked)
    except FactsError as problem:
        raise type(problem)(f"{where}: {problem}") from None
    except RecursionError:
        raise FactsError(f"{where}: JSON nested too deeply") from None


def _by_lines(text: bytes, asked: Asked) -> tuple[dict[str, Any], dict[str, Fact]] | None:
    """Read a document in nodetune's own layout line by line: most lines equal those of earlier hosts.

    Return None for any other layout; the caller then parses the whole file and reports errors.
    """
    try:
        head, found, lines = text.decode().partition(layout.FACTS)
        if not found or not lines.endswith(layout.END):
            return None
        data = _of_this_version(STRICT.decode(f'{head} "facts": 0}}'))
        facts: dict[str, Fact] = {}
        for line in lines[: -len(layout.END)].split(layout.BETWEEN):
            if not is_wanted(line[3:].partition('": ')[0], asked):
                continue
            name, fact = FORMS.of(line, _fact_of_line)
            if name in facts:
                return None
            facts[name] = fact
    except (ValueError, RecursionError):
        return None
    return data, facts


def _fact_of_line(line: str) -> tuple[str, Fact]:
    """Read a line `  "name": fact`. Raise ValueError."""
    before, _, content = line.partition('": ')
    name = before[3:]
    if not before.startswith('  "') or not _is_usual(name):
        raise ValueError(line)
    return name, _fact(name, STRICT.decode(content))


def _is_usual(name: str) -> bool:
    """Return whether a name needs no escaping in JSON or in a report. Other names are never cached."""
    return '"' not in name and "\\" not in name and plain_text.plain(name) == name


def from_data(data: Any, host: str = "", unnamed: str = "unnamed", asked: Asked = None) -> HostFacts:
    """Read a fact document that was parsed from JSON. Raise FactsError."""
    if not isinstance(data, dict) or not isinstance(data.get("facts"), dict):
        raise ForeignError("not a fact document: no object with a member `facts`")
    facts = {
        plain_text.plain(name): _known(name, fact)
        for name, fact in _of_this_version(data)["facts"].items()
        if is_wanted(name, asked)
    }
    return _described(data, facts, host, unnamed)


def _of_this_version(data: dict[str, Any]) -> dict[str, Any]:
    schema = data.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise FactsError(f"schema {plain_text.plain(schema)!r} is not {SCHEMA!r}: written by another version")
    return data


def _known(name: str, data: Any) -> Fact:
    if not _is_usual(name):
        return _fact(name, data)
    try:
        return FORMS.of(f'  "{name}": {json.dumps(data)}', _fact_of_line)[1]
    except FactsError:
        raise
    except (ValueError, RecursionError) as problem:
        raise FactsError(f"the fact {name!r} is not valid JSON: {plain_text.unread(problem)}") from None


def is_wanted(name: str, asked: Asked) -> bool:
    """Return whether a fact was asked for (None: all are). A collector may have more: those that the catalogue has by name."""
    return asked is None or name in asked or catalogue.is_in(name)


def admitted(name: str, fact: Fact) -> Fact:
    """Return the fact, or Unread with the reason if its value does not have the shape for this name.

    `N/A` and `[Not Supported]` from nvidia-smi are not values: the fact is absent.
    """
    wanted = catalogue.shape_of(name)
    if name.startswith("gpu."):
        fact = _said(fact)
    if isinstance(fact, Each):
        return _admitted_each(name, wanted, fact)
    if wanted and wanted.each and isinstance(fact, Value):
        return Unread("not understood: expected one value for each subject")
    return _admitted_one(wanted.shape if wanted else ANYTHING, fact)


def _said(fact: Fact) -> Fact:
    if isinstance(fact, Each):
        return Each({subject: _said_of_one(one) for subject, one in fact.of.items()})
    return _said_of_one(fact) if isinstance(fact, Value) else fact


def _said_of_one(fact: Single) -> Single:
    nothing = isinstance(fact, Value) and isinstance(fact.value, str) and fact.value.strip("[]").lower() in NO_VALUE
    return Absent("not supported by this GPU or driver") if nothing else fact


def _admitted_each(name: str, wanted: catalogue.Wanted | None, fact: Each) -> Each | Unread:
    if wanted and not wanted.each:
        return Unread("not understood: expected one value, not one for each subject")
    most = catalogue.MAX_GPUS if name.startswith("gpu.") and name != OF_PAIRS else MAX_MEMBERS
    if len(fact.of) > most:
        return Unread(f"not understood: expected at most {most} subjects")
    shape = wanted.shape if wanted else ANYTHING
    return Each({subject: _admitted_one(shape, one) for subject, one in fact.of.items()})


def _admitted_one(shape: Shape, fact: Single) -> Single:
    problem = shape.fault(fact.value) if isinstance(fact, Value) else ""
    return Unread(f"not understood: {plain_text.plain(problem, 200)}") if problem else fact


def _described(data: dict[str, Any], facts: dict[str, Fact], host: str, unnamed: str) -> HostFacts:
    """Add the data about the facts from the rest of the document."""
    about = data.get("about", {})
    if not isinstance(about, dict):
        raise FactsError("`about` is not an object")
    failed, stuck = data.get("failed", {}), data.get("stuck", [])
    if not isinstance(failed, dict) or not isinstance(stuck, list):
        raise FactsError("`failed` is not an object or `stuck` is not a list")
    named = data.get("host") or ""
    for name, each in (("about", about), ("failed", failed), ("stuck", stuck), ("host", named)):
        problem = ANYTHING.fault(each)
        if problem:
            raise FactsError(f"`{name}`: {problem}")
    safe_failed = {plain_text.plain(family): plain_text.plain(reason) for family, reason in failed.items()}
    described = {**about, "failed": safe_failed, "stuck": stuck}
    return HostFacts(host or plain_text.plain(named) or unnamed, facts, described)


def _fact(name: str, data: Any) -> Fact:
    """Read one fact and check its value. Raise FactsError if it is not a fact."""
    return admitted(name, _parsed(name, data))


def _parsed(name: str, data: Any) -> Fact:
    if isinstance(data, dict) and set(data) == {"each"} and isinstance(data["each"], dict):
        return Each(
            {plain_text.plain(subject): _single(f"{name} of {subject}", one) for subject, one in data["each"].items()}
        )
    return _single(name, data)


def _single(name: str, data: Any) -> Value | Absent | Unread:
    if isinstance(data, dict) and len(data) == 1:
        ((kind, content),) = data.items()
        if kind == "value":
            return Value(content)
        if kind == "absent":
            return Absent(plain_text.plain(content))
        if kind == "unread":
            return Unread(plain_text.plain(content))
    raise FactsError(f"the fact {plain_text.plain(name)!r} is not a value, absent, unread or each")


def to_data(facts: HostFacts) -> dict[str, Any]:
    """Return the document of one host, ready for JSON. It is the inverse of `from_data`."""
    about = dict(facts.about)
    return {
        "schema": SCHEMA,
        "host": facts.host,
        "about": {key: about[key] for key in sorted(about.keys() - {"failed", "stuck"})},
        "failed": about.get("failed", {}),
        "stuck": about.get("stuck", []),
        "facts": {name: _to_data(facts.facts[name]) for name in sorted(facts.facts)},
    }


def _to_data(fact: Fact) -> dict[str, Any]:
    match fact:
        case Value(value):
            return {"value": value}
        case Absent(reason):
            return {"absent": reason}
        case Unread(reason):
            return {"unread": reason}
        case Each(of):
            return {"each": {subject: _to_data(one) for subject, one in of.items()}}
    raise TypeError(f"{fact!r} is not a fact")


def parse(text: bytes | str, where: str) -> Any:
    """Parse JSON from outside. Deep nesting, long numbers and non-finite values raise FactsError."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise FactsError(f"{where}: JSON nested too deeply") from None
    except ValueError as problem:
        raise _no_json(text, problem, where) from None


def _no_json(given: bytes | str, problem: ValueError, where: str) -> FactsError:
    """Return the error of a text that is not valid JSON."""
    if not given.strip():
        return FactsError(f"{where}: not JSON: an empty file: collect the facts again")
    if isinstance(problem, UnicodeDecodeError):
        return ForeignError(f"{where}: not JSON: not UTF-8 text")
    if isinstance(problem, json.JSONDecodeError):
        if problem.pos >= len(problem.doc.rstrip()) or problem.msg.startswith("Unterminated string"):
            return FactsError(f"{where}: not JSON: cut off in line {problem.lineno}: collect the facts again")
        place = f"line {problem.lineno}, column {problem.colno}"
        return ForeignError(f"{where}: not JSON: {place}: {plain_text.plain(problem.msg, 80)}")
    return FactsError(f"{where}: not JSON: {plain_text.unread(problem)}")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_constant(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


STRICT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
"""Takes finite numbers alone. It raises ValueError or RecursionError."""


def load(path: Path, *, regular: bool = False) -> HostFacts:
    """Read one fact file; a document without a host name gets the file's. Raise FactsError.

    `regular`: never a link, a pipe or a device.
    """
    try:
        content = file_io.read(path, LARGEST_FILE, regular=regular)
    except OSError as problem:
        raise FactsError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    try:
        return read(content, str(path), unnamed=plain_text.plain(path.stem))
    except ForeignError as problem:
        raise ForeignError(f"{problem}: give --facts a file from nodetune facts") from None


def files(folder: Path) -> list[Path]:
    """Return the fact files of a folder. Raise FactsError if there is none."""
    found = sorted(folder.glob("*.json"))
    if not found:
        raise FactsError(f"{folder}: no *.json files in this folder")
    return found


def dump(facts: HostFacts) -> str:
    """Return the document as text, one fact on each line."""
    text: str = layout.text(to_data(facts))
    return text


def file_name(host: str, taken: Mapping[str, Any] | set[str]) -> str:
    """Return a file name for a host that stays in its folder, whatever the host's name."""
    safe = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in host).lstrip(".") or "host"
    if len(safe.encode()) > MAX_NAME_LENGTH:
        import hashlib  # here: OpenSSL takes 3 ms, and few hosts have such a name

        digest = hashlib.sha256(host.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        safe = f"{safe.encode()[: MAX_NAME_LENGTH - 17].decode('utf-8', 'ignore')}-{digest}"
    name, count = f"{safe}.json", 1
    while name in taken:
        count += 1
        name = f"{safe}-{count}.json"
    return name


_SERIALS = ("serial", "product_serial", "board_serial", "chassis_serial")
_SECRET_NAMES = (*_SERIALS, "uuid", "asset_tag", "hostname", "boot_id", "machine_id", "gids", "guid", "address")


def anonymous(facts: HostFacts) -> HostFacts:
    """Remove what identifies a machine: serial numbers, UUIDs, hardware and network addresses, its name."""
    hidden = {
        name: _hidden(fact) if name.rpartition(".")[2] in _SECRET_NAMES else fact for name, fact in facts.facts.items()
    }
    about = {name: value for name, value in facts.about.items() if name != "interpreter"}  # may have a user's name
    data = to_data(HostFacts("host", hidden, about))
    return from_data(_scrubbed(data))


def _hidden(fact: Fact) -> Fact:
    match fact:
        case Value():
            return Value("removed")
        case Each(of):
            return Each({subject: Value("removed") if isinstance(one, Value) else one for subject, one in of.items()})
    return fact


def _scrubbed(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            key: "removed" if key in _SECRET_NAMES and isinstance(each, str) else _scrubbed(each)
            for key, each in data.items()
        }
    if isinstance(data, list):
        return [_scrubbed(each) for each in data]
    return _ADDRESS.sub(_same_shape, data) if isinstance(data, str) else data


_ADDRESS = re.compile(
    r"\b(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}\b"  # Ethernet and InfiniBand hardware addresses
    r"|\b(?<!\.)(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b(?!\.\d)"  # IPv4
    r"|\b(?:[0-9a-f]{4}:){3,7}[0-9a-f]{4}\b"  # IPv6 and GUIDs in full
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b",  # UUIDs
    re.IGNORECASE,
)


def _same_shape(found: re.Match[str]) -> str:
    return re.sub("[0-9a-fA-F]", "0", found[0])
