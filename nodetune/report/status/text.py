"""The status of hosts for people at a terminal: a fleet on at most 40 lines, a host on one screen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TextIO

from nodetune.api.conclusion import APPLY, HAND, REPAIR, USER
from nodetune.api.model import SEVERITIES
from nodetune.foundation import text
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import FRESH, NEVER, STALE, UNKNOWN, Host, Line, Standing
from nodetune.report.text import host_names
from nodetune.report.text.lines import Lines, screen

MAX_LINES = 40
TITLES = {
    REPAIR: "BROKEN: take it out of service",
    APPLY: "APPLY CAN FIX",
    HAND: "MANUAL WORK",
    USER: "FOR THE OWNER OF THE JOB",
}
UNKNOWN_TITLE = "UNKNOWN: not examined lately, or not completely"
MAX_REASONS = 2
MAX_OF_HOST = 5
MAX_ACTIONS = 5
SEVERITY = 10
PARTS = 3
"""Of a line: the fault, the hosts, and what is wrong share its width."""


def write(found: Standing, asked: Asked, stream: TextIO) -> None:
    """Write a fleet, or the one host that was asked for."""
    out = Lines(screen(stream))
    if found.host:
        _host(out, found, asked)
        return
    out.line(*headline(found))
    told = list(_unknown(found, asked, out))
    _section(out, UNKNOWN_TITLE, told)
    shown = _fitting(found, MAX_LINES - 5 - (2 * len(told) + 2 if told else 0))
    for who, lines in found.sections(shown):
        _section(out, TITLES[who], ((_row(out, found, line), asked.of(line)) for line in lines))
    _rest(out, found.lines[len(shown) :])


def headline(found: Standing) -> list[tuple[str, str] | str]:
    """Return how many hosts there are, how many nobody knows, and what is open, in one sentence."""
    states = Counter(each.state for each in found.hosts.values())
    within = text.span(found.limits.stale)
    known = f"{states[FRESH] + states[UNKNOWN]:,} examined in {within}"
    rest = [f"{states[STALE]:,} stale", f"{states[NEVER]:,} never"]
    rest += [f"{states[UNKNOWN]:,} unknown in part"] if states[UNKNOWN] else []
    told = f": {known}, {', '.join(rest)}; {counted(found)}"
    return [(f"{len(found.hosts):,} host{'' if len(found.hosts) == 1 else 's'}", "bold"), told + _more(found)]


def plain_headline(found: Standing) -> str:
    """Return the headline without its style."""
    return "".join(part if isinstance(part, str) else part[0] for part in headline(found))


def counted(found: Standing) -> str:
    """Return how many faults are open, by severity."""
    counts = [f"{found.open[each]:,} {each}" for each in reversed(SEVERITIES) if found.open[each]]
    return f"open: {', '.join(counts)}" if counts else "nothing open"


def _more(found: Standing) -> str:
    drained = sum(1 for each in found.hosts.values() if each.drained)
    done = Counter(each.kind for each in found.actions)
    told = [f"{len(found.waived):,} waived"] if found.waived else []
    told += [f"{drained:,} drained now"] if drained else []
    told += [
        f"in {text.span(found.limits.since)}: " + ", ".join(f"{n:,} {kind}" for kind, n in done.most_common())
    ] * bool(done)
    return "".join(f"; {each}" for each in told)


def _unknown(found: Standing, asked: Asked, out: Lines) -> Iterable[tuple[list[tuple[str, str] | str], str]]:
    """Yield what nobody knows, and the command that examines it."""
    for state in (NEVER, STALE):
        if hosts := found.of_state(state):
            names = [each.name for each in hosts]
            oldest = min(each.last for each in hosts)
            why = (
                f"last examined {text.day(oldest)}{' or later' * (len(hosts) > 1)}"
                if oldest
                else "nobody examined them"
            )
            yield _cut(out, state, host_names.named(names, out.room() // PARTS), why), asked.verb("audit", names)
    unread = found.unread
    for number, (source, why, faults, names) in enumerate(unread[:MAX_REASONS], 1):
        left = len(unread) - number if number == MAX_REASONS else 0
        more = f", and {text.count(left, 'more reason')}" if left else ""
        told = f"{text.count(len(faults), 'fault')} of {text.plain(source, 20)}{more}: {text.plain(why)}"
        verb = source if source in ("audit", "verify", "watch") else "audit"
        yield _cut(out, UNKNOWN, host_names.named(names, out.room() // PARTS), told), asked.verb(verb, names)


def _section(out: Lines, title: str, rows: Iterable[tuple[Sequence[tuple[str, str] | str], str]]) -> None:
    for number, (row, command) in enumerate(rows):
        if number == 0:
            out.gap()
            out.line((title, "bold"))
        out.whole(*row, indent="  ")
        if command:
            out.whole(("next ", "dim"), (command, "green"), indent=" " * (2 + SEVERITY))


def _row(out: Lines, found: Standing, line: Line) -> list[tuple[str, str] | str]:
    parts = f" +{len(line.parts)}" if line.parts else ""
    hosts = host_names.named(line.hosts, out.room() // PARTS) if line.hosts else "the fleet"
    if found.host:
        hosts = text.names(line.devices)
    elif len(line.hosts) == 1 and line.devices:
        hosts += f" {text.names(line.devices)}"
    told = f"{text.plain(line.of.fault, 60)}{parts}  {text.plain(hosts, 200)}".rstrip()
    return _cut(out, line.of.severity, told, f"{text.plain(line.statement)}", since(found, line))


def since(found: Standing, line: Line) -> str:
    """Return since when it is open, and what was done with its hosts."""
    drained = [found.hosts[host].drained for host in line.hosts if host in found.hosts and found.hosts[host].drained]
    told = f"since {text.day(line.since)}"
    told += f", not judged again since {text.day(line.unproven)}" if line.unproven else ""
    if drained and not found.host:
        told += f", drained {text.day(min(drained))}" if len(line.hosts) == 1 else f", {len(drained)} drained"
    return told


def _cut(out: Lines, word: str, head: str, told: str, end: str = "") -> list[tuple[str, str] | str]:
    """Return a row that fits on a line: its middle gives way."""
    room = out.room("  ") - SEVERITY
    after = f"  {end}" if end else ""
    head = text.plain(head, max(20, room - len(after)))
    left = room - len(head) - len(after) - 2
    middle = f"  {text.plain(told, left)}" if told and left >= 12 else ""
    return [(f"{word:<{SEVERITY}}", word), head + middle, (after, "dim")]


def _fitting(found: Standing, room: int) -> Sequence[Line]:
    """Return the first lines that fit with the titles of their sections."""
    titles: set[str] = set()
    for number, line in enumerate(found.lines):
        titles.add(line.of.who)
        if 2 * (number + 1) + 2 * len(titles) > room:
            return found.lines[:number]
    return found.lines


def _rest(out: Lines, left: Sequence[Line]) -> None:
    if left:
        counts = Counter(line.of.severity for line in left)
        worst = ", ".join(f"{counts[each]} {each}" for each in reversed(SEVERITIES) if counts[each])
        out.gap()
        out.line((f"… and {len(left)} more ({worst}): --format csv or html has all", "dim"))


def _host(out: Lines, found: Standing, asked: Asked) -> None:
    """Write what is wrong with one host, what was done, and who examined it when."""
    host = found.hosts[found.host]
    now = f"; drained since {text.day(host.drained)}" if host.drained else ""
    waived = f"; {len(found.waived)} waived" if found.waived else ""
    out.line((text.plain(found.host, 100), "bold"), f": {_looked(found, host)}; {counted(found)}{waived}{now}")
    shown = found.lines[:MAX_OF_HOST]
    for who, lines in found.sections(shown):
        _section(out, TITLES[who], ((_row(out, found, line), asked.of(line)) for line in lines))
    _rest(out, found.lines[len(shown) :])
    _section(out, UNKNOWN_TITLE, list(_unknown(found, asked, out)))
    _done(out, found)
    if host.examined:
        ages = sorted(host.examined.items(), key=lambda each: -each[1])
        out.gap()
        out.line(("EXAMINED  ", "bold"), " · ".join(f"{text.plain(one)} {_age(found, at)}" for one, at in ages))
    out.gap()
    out.commands(("history", asked.verb("history", [found.host])), ("again", asked.verb("audit", [found.host])))


def _done(out: Lines, found: Standing) -> None:
    if not found.actions:
        return
    out.gap()
    out.line(("DONE", "bold"), (f" in {text.span(found.limits.since)}", "dim"))
    for each in found.actions[-MAX_ACTIONS:][::-1]:
        by = f" by {text.plain(each.by, 40)}" if each.by else ""
        why = "  ".join(text.plain(one, 200) for one in (each.device, each.reason, each.run) if one)
        out.whole(*_cut(out, text.day(each.at), f" {each.kind}{by}", why), indent="  ")
    if len(found.actions) > MAX_ACTIONS:
        out.line((f"… and {len(found.actions) - MAX_ACTIONS} earlier: --format json has all", "dim"), indent="  ")


def _looked(found: Standing, host: Host) -> str:
    words = {NEVER: "never examined", STALE: f"stale, last examined {_age(found, host.last)}"}
    return words.get(host.state, f"examined {_age(found, host.last)}")


def _age(found: Standing, at: int) -> str:
    return f"{text.span(max(0, found.limits.now - at))} ago"
