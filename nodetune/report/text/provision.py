"""The plan and the result of a provision for people: hosts folded, failures with their next command."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from nodetune.config.site_provision import Provision
from nodetune.foundation import by_key, nodeset, text
from nodetune.provision.decide import VersionDecision
from nodetune.provision.lock import Lock, Versions, changes
from nodetune.provision.record import DONE, FAILED, LEFT_OUT, NOT_BEGUN, NOTHING, StageResult
from nodetune.report.text.apply import print_drained
from nodetune.report.text.host_names import UNKNOWN_KEY, unreached
from nodetune.report.text.lines import Lines, console

STYLE = {DONE: "green", NOTHING: "dim", FAILED: "bold red", NOT_BEGUN: "yellow", LEFT_OUT: "dim"}
MAX_PACKAGES = 40


def print_plan(
    stream: TextIO, decisions: Mapping[str, VersionDecision], came: Mapping[str, StageResult], asked: str = ""
) -> None:
    """Print the packages that would change, folded over hosts, and the hosts that stay unchanged.

    `asked` are the options that select the hosts, for proposed commands.
    """
    out = Lines(console(stream))
    alike = by_key(((came[host].message, tuple(each.changes())), host) for host, each in decisions.items())
    for (told, moved), hosts in alike.items():
        out.line((nodeset.fold(hosts), "bold"), f"  {told}")
        _print_changes(out, moved)
    for host, why in _without_keys(out, {host: each.message for host, each in came.items() if not each.ok}, asked):
        out.line(("not changed  ", "bold red"), (host, "bold"), f"  {why}")


def print_unanswered(stream: TextIO, problems: Mapping[str, str], asked: str) -> None:
    """Print why hosts returned no versions. `asked` are the options that select the hosts, for proposed commands."""
    out = Lines(console(stream))
    for host, why in _without_keys(out, problems, asked):
        out.whole((f"{host}: {why}", ""))


def _without_keys(out: Lines, problems: Mapping[str, str], asked: str) -> list[tuple[str, str]]:
    """Print the hosts with unknown keys and the command that accepts the keys. Return the others with their reasons."""
    begin = f"{UNKNOWN_KEY}: "
    keys = ((UNKNOWN_KEY, host, why.removeprefix(begin)) for host, why in problems.items() if why.startswith(begin))
    unreached(out, keys, f"nodetune audit {asked}".rstrip())
    return [(host, why) for host, why in problems.items() if not why.startswith(begin)]


def _print_changes(out: Lines, moved: Sequence[tuple[str, str, str]]) -> None:
    for name, before, after in moved[:MAX_PACKAGES]:
        what = f"{before} → {after}" if before and after else after or f"{before} → removed"
        out.line(f"{name} ", (text.plain(what), "cyan"), indent="    ")
    if len(moved) > MAX_PACKAGES:
        out.line(f"and {len(moved) - MAX_PACKAGES} more", indent="    ")


def print_record(stream: TextIO, document: Mapping[str, Any], drained: Mapping[str, str]) -> None:
    """Print the result of a provision: stages, failures with their next command, the run, and the hosts that stay drained."""
    out = Lines(console(stream))
    hosts = list(objects(document.get("hosts")))
    print_stages(out, hosts)
    broken = [each for each in hosts if each.get("next")]
    well = len(hosts) - len(broken)
    out.line((f"{well} of {text.count(len(hosts), 'host')} completed", "bold"))
    run = text.plain(document.get("run") or "")
    out.whole(("run ", ""), (run, "bold"), (f"; details: nodetune runs show {run}", ""))
    print_drained(stream, drained)


def print_stages(out: Lines, hosts: Sequence[Mapping[str, Any]]) -> None:
    """Print stage by stage, equal hosts together; then failures with their next command."""
    alike: dict[str, dict[tuple[str, str], list[str]]] = {}
    for host in hosts:
        broke = _broke_at(host)
        for each in objects(host.get("stages")):
            state, message = text.plain(each.get("state") or ""), text.plain(each.get("message") or "", 700)
            if not (broke and state == NOT_BEGUN):  # it only says again that an earlier stage failed
                named = alike.setdefault(text.plain(each.get("stage") or ""), {})
                named.setdefault((state, message), []).append(text.plain(host.get("name") or ""))
    for stage, found in alike.items():
        for (state, message), names in found.items():
            where = "" if len(hosts) == 1 else f"{nodeset.fold(names)}  "
            out.line((f"{stage:<9} ", "bold"), (f"{state:<14}", STYLE.get(state, "")), where, message)
    for host in hosts:
        if host.get("next"):
            name, command = text.plain(host.get("name") or ""), text.plain(host["next"], 1000)
            out.whole((f"{name}: {_broke_at(host)} failed; after fixing it: ", ""), (command, "green"))


def objects(document: Any) -> Iterator[Mapping[str, Any]]:
    """Return the objects in a list of a record, which may contain anything."""
    return (each for each in document if isinstance(each, dict)) if isinstance(document, list) else iter(())


def _broke_at(host: Mapping[str, Any]) -> str:
    failed = (each for each in objects(host.get("stages")) if each.get("state") == FAILED)
    return text.plain(next((each.get("stage") for each in failed), ""))


WORDS = {
    "reboot": "if nouveau is loaded, or if the running driver is not the installed one",
    "tune": "apply the profile, with a reboot: nodetune apply --max-disruption reboot --reboot",
    "audit": "no findings left that nodetune can fix or that gate jobs",
    "verify": "the quick suite, on idle hosts",
}


def print_rest(
    stream: TextIO, stages: Sequence[str], site: Provision, decisions: Mapping[str, VersionDecision], problems: int
) -> None:
    """Print the stages after the packages, which check mode cannot show, and the totals of the dry run."""
    out = Lines(console(stream))
    own = {
        "baseline": f"saved in {site.baseline}, or compared with it" if site.baseline else "",
        "guard": site.guard,
        "join": site.join if site.join != "none" else "",
    }
    for stage in stages:
        out.line((f"{stage:<9} ", "bold"), WORDS.get(stage) or own.get(stage) or ("left out", "dim"))
    packages = text.count(len({name for each in decisions.values() for name, _, _ in each.changes()}), "package")
    wrong = f", {text.count(problems, 'problem')}" if problems else ""
    hosts = text.count(len(decisions), "host")
    out.line((f"dry run: {packages} on {hosts}{wrong}. Nothing was changed.", "bold"))


def print_lock(stream: TextIO, old: Lock, new: Lock) -> None:
    """Print what a lock file adds or changes."""
    out = Lines(console(stream))
    moved = {system: changes(old.get(system, Versions()), each) for system, each in new.items()}
    for system, found in moved.items():
        if found:
            driver = f"  driver {new[system].driver}" if new[system].driver else ""
            out.line((system, "bold"), driver)
            _print_changes(out, found)
    if not any(moved.values()):
        out.line("The lock file is up to date.")
