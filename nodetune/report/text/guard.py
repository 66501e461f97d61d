"""The output of `nodetune guard` for people."""

import json
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from nodetune.api.model import HostResult
from nodetune.audit.devices import line
from nodetune.foundation import by_key, nodeset
from nodetune.foundation import text as plain_text
from nodetune.guard.deploy import gres, node_changes, slurm_conf
from nodetune.guard.deploy.install import PreparedInstall
from nodetune.guard.deploy.nodes import GuardedNode, NodeAnswer
from nodetune.guard.deploy.paths import RUN, VAR
from nodetune.guard.deploy.playbooks import GuardReport
from nodetune.guard.deploy.policy import PolicyDiff
from nodetune.guard.deploy.resume import BACK, MAY, Fate
from nodetune.guard.deploy.status import Guard, Status
from nodetune.report.text import apply
from nodetune.report.text.host_names import unreached
from nodetune.report.text.lines import Lines, console

INDENT = " " * 10
HEADINGS = ("node", "slurm", "guard", "last run", "inconclusive", "drain")
UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (0, "s"))


def print_prepared(stream: TextIO, prepared: PreparedInstall, asked: str, *, timer: bool) -> None:
    """Print what an install is about to do. `asked` are the options that select the hosts; `timer`: it brings a timer."""
    print_not_reached(stream, prepared.lost, asked)
    print_policies(stream, prepared.policies)
    installed = [node.name for node in prepared.nodes if node.policy]
    print_differences(stream, {name: prepared.differences[name] for name in installed})
    print_failing(stream, prepared.nodes)
    print_gres(stream, prepared.nodes)
    print_without_slurm(stream, prepared.nodes, timer)


def print_diff(stream: TextIO, prepared: PreparedInstall, asked: str) -> None:
    """Print what an install would gate. `asked` are the options that select the hosts."""
    print_not_reached(stream, prepared.lost, asked)
    print_bare(stream, prepared.nodes)
    print_differences(stream, prepared.differences)
    print_failing(stream, prepared.nodes)
    if prepared.nodes and not prepared.differs:
        Lines(console(stream)).line("an install would not change any gating check")


def print_bare(stream: TextIO, nodes: Iterable[GuardedNode]) -> None:
    """Print the nodes without a guard."""
    if bare := [node.name for node in nodes if not node.policy]:
        Lines(console(stream)).line(("no guard on ", "cyan"), (nodeset.fold(bare), "bold"))


def print_install_dry_run(stream: TextIO, prepared: PreparedInstall, report: GuardReport, *, lines: bool) -> None:
    """Print what an install would change. `lines`: also the lines that slurm.conf lacks."""
    if lines:
        print_lacking(stream, {node.name: node.settings for node in prepared.nodes if node.slurm}, reload=False)
    print_hurried(stream, {node.name: node.settings for node in prepared.nodes}, prepared.policies)
    print_dry_run(stream, report)


def print_dry_run(stream: TextIO, report: GuardReport) -> None:
    diffs = apply.diffs_of(report.outcomes)
    apply.print_diffs(stream, diffs, len(diffs) == 1)
    _print_problems(stream, report)
    wrong = sum(map(len, apply.problems_of(report.outcomes).values())) + len(apply.failures_of(report.outcomes))
    apply.print_dry_run(stream, diffs, wrong)


def print_installed(stream: TextIO, prepared: PreparedInstall, report: GuardReport) -> None:
    """Print the result of an installation, and the running Slurm's view."""
    print_changes(stream, report)
    print_running(stream, prepared.nodes, report.answers, report.written)
    print_hurried(stream, {host: answer.slurm for host, answer in report.answers.items()}, prepared.policies)


def print_changes(stream: TextIO, report: GuardReport) -> None:
    """Print how many changes were made, and what went wrong."""
    changed = [host for host, each in report.outcomes.items() for done in each.gathered("done") if done.get("changed")]
    out, where = Lines(console(stream)), f" on {nodeset.fold(dict.fromkeys(changed))}" if changed else ""
    out.line((plain_text.count(len(changed), "change"), "bold"), where)
    _print_problems(stream, report)
    if report.problem:
        out.line(("problem  ", "bold red"), report.problem)
    if report.called:
        names = nodeset.fold(report.called)
        text = f"Slurm still calls the guard on {names}: scontrol reconfigure, then uninstall again"
        out.line(("left      ", "yellow"), text)


def print_left(stream: TextIO, report: GuardReport) -> None:
    """Print what an uninstall leaves on the nodes that it changed."""
    if report.outcomes and not report.called:
        kept = f"{VAR} (journals and the program, for a rollback; drains), {RUN} (until the next boot), and records in a shared folder"
        Lines(console(stream)).line(("left      ", "yellow"), kept, hang=INDENT)


def print_drained(stream: TextIO, nodes: Sequence[str], known: bool, asked: str) -> None:
    """Print the nodes that stay drained without the guard, and what resumes them. `known`: Slurm says so."""
    if nodes:
        names = nodeset.fold(nodes)
        told = "drained by the guard, and stays so" if known else "drained by the guard, and may still be so"
        out, command = Lines(console(stream)), f"nodetune guard resume {asked}".rstrip()
        out.line(("drained   ", "yellow"), (names, "bold"), f"  {told}; once its checks pass:", hang=INDENT)
        out.whole((f"{command} {shlex.quote(names)}", "green"), indent=INDENT)


def _print_problems(stream: TextIO, report: GuardReport) -> None:
    problems, failed = apply.problems_of(report.outcomes), apply.failures_of(report.outcomes)
    apply.print_problems(stream, problems, failed, len(problems) == 1)


def print_policies(stream: TextIO, made: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the policies and their hosts."""
    out = Lines(console(stream))
    for text, hosts in by_key((_described(policy), host) for host, policy in made.items()).items():
        first, _, rest = text.partition("\n")
        out.line(("policy    ", "cyan"), (nodeset.fold(hosts), "bold"), f"  {first}", hang=INDENT)
        out.line(rest, indent=INDENT)


def _described(policy: Mapping[str, Any]) -> str:
    shared = f", shared folder {policy['shared']}" if policy["shared"] else ""
    gates = plain_text.names([check["id"] for check in policy["checks"]]) if policy["checks"] else "none"
    return f"{policy['mode']}, act {policy['act']}, profile {policy['profile']}{shared}\n{len(policy['checks'])} gating: {gates}"


def print_differences(stream: TextIO, found: Mapping[str, PolicyDiff]) -> None:
    """Print what the new policy would change, with hosts folded."""
    out = Lines(console(stream))
    told = ((line, host) for host, difference in found.items() for line in _lines(difference))
    for text, hosts in by_key(told).items():
        word, _, rest = text.partition("\n")
        out.line((f"{word}  ", "yellow"), (nodeset.fold(hosts), "bold"), f"  {rest}", hang=INDENT)


def _lines(found: PolicyDiff) -> Iterable[str]:
    for word, names in (
        ("newly gates    ", found.gates),
        ("no longer gates", found.gates_no_more),
        ("changed rule   ", found.judged_otherwise),
    ):
        if names:
            yield f"{word}\n{', '.join(names)}"
    for name, before, after in found.settings:
        yield f"setting        \n{name}: {plain_text.plain(json.dumps(before), 80)} → {plain_text.plain(json.dumps(after), 80)}"


def print_failing(stream: TextIO, nodes: Iterable[GuardedNode]) -> None:
    """Print the hosts on which jobs would be held now."""
    out = Lines(console(stream))
    for node in nodes:
        for found in node.failing():
            text = f"  {plain_text.plain(line(found), 200)}"
            out.line(("fails now ", "bold red"), (node.name, "bold"), text, hang=INDENT)


def print_lacking(stream: TextIO, settings: Mapping[str, Mapping[str, str]], reload: bool) -> None:
    """Print the lines that slurm.conf lacks on hosts; `settings` are current settings with lower-case names."""
    out = Lines(console(stream))
    for text, hosts in by_key((_lacking(found), host) for host, found in settings.items()).items():
        if text:
            what = "Slurm     " if reload else "slurm.conf"
            needs = f" needs these lines on {nodeset.fold(hosts)} (the same on every host of the cluster):"
            out.line((what, "yellow"), needs, hang=INDENT)
            for line in text.splitlines():
                out.whole((line, ""), indent=INDENT)
            out.line("then run scontrol reconfigure (--write-slurm-conf adds the lines)")
        elif reload:
            out.line(("Slurm     ", "green"), f"calls the guard on {nodeset.fold(hosts)}", hang=INDENT)


def _lacking(settings: Mapping[str, str]) -> str:
    found = slurm_conf.missing(settings)
    lines = [f"{name}={value}" for name, value in found.items()]
    for name, value in found.items():
        there = settings.get(name.lower(), "")
        if value.startswith("/") and there:
            now = plain_text.plain(there, 200)
            lines.append(f"# {name}={now} is currently set: make it call {value} and exit with the same code")
    return "\n".join(lines)


def print_hurried(
    stream: TextIO, settings: Mapping[str, Mapping[str, str] | None], made: Mapping[str, Mapping[str, Any]]
) -> None:
    """Print hosts on which Slurm would kill the guard before it finishes."""
    out = Lines(console(stream))
    told = []
    for host, policy in made.items():
        most = node_changes.most_seconds(policy)
        told += [((name, its, most), host) for name, its in slurm_conf.hurried(settings.get(host) or {}, most).items()]
    for (name, its, most), hosts in by_key(told).items():
        ends = "end its health check" if name == slurm_conf.HEALTH_TIMEOUT else "drain the node"
        text = f"{name}={its} on {nodeset.fold(hosts)}, but the guard may take {most} s: Slurm would {ends}"
        out.line(("slurm.conf", "yellow"), f" {text}; set it to at least {most}", hang=INDENT)


def print_gres(stream: TextIO, nodes: Iterable[GuardedNode]) -> None:
    """Print what gres.conf lacks."""
    out = Lines(console(stream))
    for text, hosts in by_key((gres.lacking(node.facts), node.name) for node in nodes).items():
        if text:
            names = nodeset.fold(hosts)
            needs = f" lists no GPUs for {names}; according to their facts it should be:"
            out.line(("gres.conf ", "yellow"), needs, hang=INDENT)
            for line in text:
                out.whole((f"NodeName={names} {line}", ""), indent=INDENT)
            out.line("(or AutoDetect=nvml alone, where slurmd was built with NVML)", indent=INDENT)


def print_without_slurm(stream: TextIO, nodes: Iterable[GuardedNode], timer: bool) -> None:
    """Print the hosts without slurm.conf: nothing calls the guard there before a job."""
    out = Lines(console(stream))
    for (slurm, timed), hosts in by_key(
        ((node.slurm, timer or node.textfile is not None), node.name) for node in nodes if not node.conf
    ).items():
        what = "Slurm is there, but no slurm.conf was found" if slurm else "no slurm.conf and no slurmd there"
        calls = (
            "only the timer runs the guard"
            if timed
            else "nothing would run the guard; --timer runs its checks every minute"
        )
        out.line(("slurm.conf", "yellow"), " ", (nodeset.fold(hosts), "bold"), f"  {what}: {calls}", hang=INDENT)


def print_running(
    stream: TextIO, nodes: Sequence[GuardedNode], answers: Mapping[str, NodeAnswer], written: bool = False
) -> None:
    """Print what Slurm reports after the installation. `written`: slurm.conf has the lines on every host."""
    out, asked = Lines(console(stream)), {node.name: answers[node.name].slurm for node in nodes if node.slurm}
    waiting = [host for host, found in asked.items() if written and found is not None and _lacking(found)]
    if waiting:
        told = f"does not call the guard yet on {nodeset.fold(waiting)}: slurm.conf has the lines; now run scontrol reconfigure"
        out.line(("Slurm     ", "yellow"), told, hang=INDENT)
    called = {host: found for host, found in asked.items() if found is not None and host not in waiting}
    print_lacking(stream, called, reload=True)
    silent = nodeset.fold(host for host, found in asked.items() if found is None)
    if silent:
        out.line(("Slurm     ", "yellow"), f"did not answer on {silent}: scontrol show config", hang=INDENT)


def print_not_reached(stream: TextIO, lost: Iterable[HostResult], asked: str) -> None:
    """Print the unreachable hosts. `asked` are the options that select them, for the proposed command."""
    failures = [(each.state, each.host, each.message) for each in lost]
    unreached(Lines(console(stream)), failures, f"nodetune audit {asked}")


def print_status(stream: TextIO, found: Sequence[Status], asked: str) -> None:
    """Print a table with one line for each node and the reasons for unreachable nodes. `asked` selects the nodes."""
    rows = [HEADINGS, *(_row(each) for each in found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADINGS))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        stream.write(f"{line.rstrip()}\n")
    out = Lines(console(stream))
    told = ((each.guard.last_reason, each.name) for each in found if each.guard and each.guard.last_reason)
    for reason, names in by_key(told).items():
        out.line(("failed    ", "bold red"), (nodeset.fold(names), "bold"), f"  {reason}", hang=INDENT)
    lost = [(*each.problem.partition(": ")[::2], each.name) for each in found if each.guard is None]
    failures = [(state, name, why) for state, why, name in lost if why]
    unreached(out, failures, f"nodetune audit {asked}")


def _row(one: Status) -> tuple[str, ...]:
    guard = one.guard
    if guard is None:
        return one.name, one.state, "?", "?", "?", f"not reached: {one.problem.partition(': ')[0]}"
    installed = f"{guard.installed['mode']}, act {guard.installed['act']}" if guard.installed else "not installed"
    return one.name, one.state, installed, _last_run(guard), str(guard.inconclusive_runs), _drain(one, guard)


def _last_run(guard: Guard) -> str:
    if guard.last_run is None:
        return "no run yet"
    seconds = time.time() - guard.last_run[0]
    size, unit = next(each for each in UNITS if seconds >= each[0] or not each[0])
    return f"{max(0, int(seconds // (size or 1)))} {unit} ago: {guard.last_run[2]}"


def _drain(one: Status, guard: Guard) -> str:
    if not one.out_of_service:
        return "-"
    if guard.held and guard.held[1] != one.reason:
        job, reason = guard.held
        return f"ours: {one.reason} (job {job} was held; the next health check writes the reason): {reason}"
    return f"{'ours' if guard.ours else 'not ours'}: {one.reason or 'no reason'}"


def print_fate(stream: TextIO, fate: Fate, judged: str = "") -> None:
    """Print what happened to a drained node. `judged` are the options of profile and site file."""
    said = {BACK: "back in service", MAY: "would be resumed"}.get(fate.state, "stays drained")
    after = f"; next: nodetune explain {fate.check} {judged}".rstrip() if fate.check else ""
    by = f" (by {fate.judged_by})" if fate.judged_by else ""
    stream.write(f"{fate.name}: {said}: {fate.why}{by}{after}\n")


def print_resumable(stream: TextIO, found: Sequence[Fate]) -> None:
    """Print the totals of a dry run of resume."""
    may = sum(each.state == MAY for each in found)
    stream.write(f"dry run: {may} of {plain_text.count(len(found), 'node')} would be resumed. Nothing was changed.\n")
