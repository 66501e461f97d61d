"""What a provision will do, and what it came to, for people: hosts folded, failures with what to type next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from nodetune import nodeset, show
from nodetune.provision.decide import Decision
from nodetune.provision.lock import Lock, Versions, changes
from nodetune.provision.record import DONE, FAILED, LEFT_OUT, NOT_BEGUN, NOTHING, Came, Record
from nodetune.report.text import Lines, console
from nodetune.siteprovision import Provision

STYLE = {DONE: "green", NOTHING: "dim", FAILED: "bold red", NOT_BEGUN: "yellow", LEFT_OUT: "dim"}
MOST_PACKAGES = 40


def print_plan(stream: TextIO, decisions: Mapping[str, Decision], came: Mapping[str, Came]) -> None:
    """The packages that would move, hosts with the same together, and the hosts that are left alone."""
    out = Lines(console(stream))
    alike: dict[tuple[str, tuple[tuple[str, str, str], ...]], list[str]] = {}
    for host, decision in decisions.items():
        alike.setdefault((came[host].message, tuple(decision.changes())), []).append(host)
    for (told, moved), hosts in alike.items():
        out.line((nodeset.fold(hosts), "bold"), f"  {told}")
        _print_changes(out, moved)
    for host, each in came.items():
        if not each.ok:
            out.line(("left alone  ", "bold red"), (host, "bold"), f"  {each.message}")


def _print_changes(out: Lines, moved: Sequence[tuple[str, str, str]]) -> None:
    for name, before, after in moved[:MOST_PACKAGES]:
        what = f"{before} → {after}" if before and after else after or f"{before} → gone"
        out.line(f"{name} ", (show.plain(what), "cyan"), indent="    ")
    if len(moved) > MOST_PACKAGES:
        out.line(f"and {len(moved) - MOST_PACKAGES} more", indent="    ")


def print_record(stream: TextIO, record: Record) -> None:
    """Stage by stage; what failed with its next command; where the record is."""
    out = Lines(console(stream))
    for stage in record.stages:
        alike: dict[tuple[str, str], list[str]] = {}
        for host, stages in record.hosts.items():
            if stage in stages and not _follows(record, host, stage):
                alike.setdefault((stages[stage].state, stages[stage].message), []).append(host)
        for (state, message), hosts in alike.items():
            where = "" if len(record.hosts) == 1 else f"{nodeset.fold(hosts)}  "
            out.line((f"{stage:<9} ", "bold"), (f"{state:<14}", STYLE[state]), where, message)
    broken = [host for host in record.hosts if record.broke_at(host)]
    for host in broken:
        out.whole((f"{host}: {record.broke_at(host)} failed; once that is mended: ", ""), (record.again(host), "green"))
    well = len(record.hosts) - len(broken)
    out.line((f"{well} of {len(record.hosts)} hosts went through", "bold"))
    out.whole(("run ", ""), (record.run, "bold"), (f"; what it did: nodetune runs show {record.run}", ""))


def _follows(record: Record, host: str, stage: str) -> bool:
    """Whether it only says again that an earlier stage failed."""
    return bool(record.broke_at(host)) and record.hosts[host][stage].state == NOT_BEGUN


WORDS = {
    "reboot": "where nouveau is loaded, or the running driver is not the installed one",
    "tune": "the apply of the profile, with its reboot: nodetune apply --max-disruption reboot --reboot",
    "audit": "nothing that nodetune could fix is left, nothing that would keep jobs away",
    "verify": "the quick suite, on hosts that nothing uses",
}


def print_rest(stream: TextIO, stages: Sequence[str], site: Provision) -> None:
    """What would follow upon the packages: no check mode can tell it, for it depends on them."""
    out = Lines(console(stream))
    own = {
        "baseline": f"kept in {site.baseline}, or held against it" if site.baseline else "",
        "guard": site.guard,
        "join": site.join if site.join != "none" else "",
    }
    for stage in stages:
        out.line((f"{stage:<9} ", "bold"), WORDS.get(stage) or own.get(stage) or ("left out", "dim"))
    out.line("Nothing was changed.")


def print_lock(stream: TextIO, old: Lock, new: Lock) -> None:
    """What a lock file has now that it had not, or otherwise."""
    out = Lines(console(stream))
    moved = {system: changes(old.get(system, Versions()), each) for system, each in new.items()}
    for system, found in moved.items():
        if found:
            driver = f"  driver {new[system].driver}" if new[system].driver else ""
            out.line((system, "bold"), driver)
            _print_changes(out, found)
    if not any(moved.values()):
        out.line("The lock file has it all: nothing is newer, nothing is missing.")
