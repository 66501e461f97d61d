"""Hosts in texts for people: names folded, counted and cut at a safe place; how hosts were judged; why they failed."""

import re
from collections.abc import Iterable, Sequence

from nodetune.api.model import HostResult
from nodetune.foundation import by_key
from nodetune.foundation import text as plain_text
from nodetune.report.text.lines import Lines

MAX_NAME_LENGTH = 64
"""Names up to this length are never cut: a part of a name would identify no host."""

FEW = 8
"""Up to this many hosts, no count is needed."""

MAX_REASONS = 6
MAX_LENGTH = 160
CUT = " … "
"""Separates the named hosts from the number of the others."""

WHOLE = 1 << 20
"""Longer than any list of hosts."""

_ADDRESS = re.compile(r"^[\w.:%-]+ port (\d+)")
"""The address at the start of a connection error. It differs between hosts, so equal failures would not fold."""

Failure = tuple[str, str, str]
"""An unreachable host: state, name, reason."""

UNKNOWN_KEY = "unknown host key"
KEYS = "their keys are not in known_hosts: compare them (nodetune audit --format json shows each), then accept them"
"""One reason for all hosts with unknown keys: the message about each key would fill a screen."""

ACCEPT = "--accept-new-host-keys"
"""Accepts new keys; a changed key is still rejected."""


def fold(hosts: Iterable[str], longest: int = MAX_LENGTH) -> str:
    """Fold hosts into one node set. If it is too long, return its first hosts and the number of the others."""
    names = sorted(hosts, key=_natural)
    if _seems_short(names, longest):
        text = plain_text.plain(_folded(names), WHOLE)
        if len(text) <= longest:
            return text
    room = longest - len(f"{CUT}{len(names)} more")
    shown, first = _first(names, room)
    return (
        f"{plain_text.plain(shown, max(MAX_NAME_LENGTH, room))}{CUT}{len(names) - first} more"
        if len(names) > first
        else shown
    )


def _folded(names: Sequence[str]) -> str:
    """Fold names into one node set. Most reports are about one host, whose name is its own node set."""
    if len(names) < 2:
        return "".join(names)
    from nodetune.foundation import nodeset

    return nodeset.fold(names)


def _seems_short(names: Sequence[str], longest: int) -> bool:
    """Return whether the names may fold into `longest` characters: folding thousands that do not takes a second."""
    most = FEW
    while most < len(names):
        if len(_folded(names[:most])) > max(400, 4 * longest):
            return False
        most *= 2
    return True


def _first(names: Sequence[str], room: int) -> tuple[str, int]:
    """Return as many of the first names as fit (at least one) as a node set, and their number."""
    low, high = 1, 2
    while high < len(names) and len(_folded(names[:high])) <= room:
        low, high = high, high * 2
    high = min(high, len(names))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_folded(names[:middle])) <= room else (low, middle - 1)
    return _folded(names[:low]), low


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key with numbers by value; at most 18 digits because Python rejects thousands of digits."""
    return [(int(part[:18]) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", name)]


def named(hosts: Sequence[str], longest: int = MAX_LENGTH) -> str:
    """Fold the host names, preceded by their number if there are more than a few."""
    if len(hosts) <= FEW:
        return fold(hosts, longest)
    counted = f"{plain_text.count(len(hosts), 'host')}  "
    return f"{counted}{fold(hosts, longest - len(counted))}"


def aged(results: Iterable[HostResult]) -> dict[str, list[str]]:
    """Return age of the facts → the hosts. Current facts are left out."""
    told = (each for each in results if each.state == "ok" and each.message)
    found = by_key((plain_text.plain(each.message), each.host) for each in told)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def unreached(out: Lines, failures: Iterable[Failure], command: str = "", *, indent: str = "") -> None:
    """Print one line for each reason. `command` is the command that was run, to be proposed again."""
    lost = [(state, why, hosts) for state, found in causes(failures).items() for why, hosts in found]
    for state, why, hosts in lost[:MAX_REASONS]:
        out.line((state, "bold magenta"), f"  {named(hosts, 48)}: {why}", indent=indent, hang=" " * 8)
    if rest := lost[MAX_REASONS:]:
        left = sum(len(hosts) for *_, hosts in rest)
        told = (
            f"{plain_text.count(len(rest), 'more reason')} ({plain_text.count(left, 'host')}): --format json lists all"
        )
        out.line((f"… and {told}", "dim"), indent=indent)
    if any(why == KEYS for _, why, _ in lost):
        out.whole(("to do     ", "dim"), (f"{command} {ACCEPT}".strip(), "green"), indent=indent)


def causes(failures: Iterable[Failure]) -> dict[str, list[tuple[str, list[str]]]]:
    """Return state → (reason, hosts), most hosts first. Messages that differ only in the host name count as equal."""
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for state, host, message in failures:
        said = plain_text.plain(message.removeprefix(f"{host}: "))
        alike.setdefault((state, _nameless(said, host)), []).append((host, said))
    by_state: dict[str, list[tuple[str, list[str]]]] = {}
    for (state, nameless), told in alike.items():
        words = {said for _, said in told}  # what a single host says stays as it is
        why = nameless if len(words) > 1 else words.pop()
        by_state.setdefault(state, []).append((why, [host for host, _ in told]))
    if len(found := by_state.get(UNKNOWN_KEY, [])) > 1:
        by_state[UNKNOWN_KEY] = [(KEYS, [host for _, hosts in found for host in hosts])]
    return {state: sorted(found, key=lambda each: -len(each[1])) for state, found in by_state.items()}


def _nameless(message: str, host: str) -> str:
    """Remove the host name from a message if it is a whole word or the name of a file."""
    name = re.escape(host)
    message = re.sub(rf"(?<=/){name}(?=\.json\b)", "HOST", message)
    message = _ADDRESS.sub(r"the host's port \1", message)
    return re.sub(rf"(?<![\w./-]){name}(?![\w/-]|\.\w)", "the host", message)
