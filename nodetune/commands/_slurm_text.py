"""What the commands that install the guard print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from nodetune import guardinstall, nodeset, show
from nodetune.commands import _slurm_gres
from nodetune.commands._slurm_nodes import Answer, Node
from nodetune.model import HostResult
from nodetune.report.text import Lines, console

INDENT = " " * 10


def _together(told: Iterable[tuple[str, Any]]) -> list[tuple[Any, list[str]]]:
    """(text or lines, the hosts that it is true of)."""
    same: dict[Any, list[str]] = {}
    for host, text in told:
        same.setdefault(text, []).append(host)
    return list(same.items())


def print_policies(stream: TextIO, made: Mapping[str, Mapping[str, Any]]) -> None:
    """Which policy goes to which hosts."""
    out = Lines(console(stream))
    told = ((host, _described(policy)) for host, policy in made.items())
    for text, hosts in _together(told):
        first, _, rest = text.partition("\n")
        out.line(("policy    ", "cyan"), (nodeset.fold(hosts), "bold"), f"  {first}")
        out.line(rest, indent=INDENT)


def _described(policy: Mapping[str, Any]) -> str:
    shared = f", shared folder {policy['shared']}" if policy["shared"] else ""
    gates = show.names([check["id"] for check in policy["checks"]]) if policy["checks"] else "none"
    return f"{policy['mode']}, act {policy['act']}, profile {policy['profile']}{shared}\n{len(policy['checks'])} gating: {gates}"


def print_differences(stream: TextIO, found: Mapping[str, guardinstall.Difference]) -> None:
    """What another policy would change, hosts together."""
    out = Lines(console(stream))
    told = ((host, line) for host, difference in found.items() for line in _lines(difference))
    for text, hosts in _together(told):
        word, _, rest = text.partition("\n")
        out.line((f"{word}  ", "yellow"), (nodeset.fold(hosts), "bold"), f"  {rest}")


def _lines(found: guardinstall.Difference) -> Iterable[str]:
    for word, names in (
        ("newly gates    ", found.gates),
        ("gates no more  ", found.gates_no_more),
        ("judged anew    ", found.judged_otherwise),
    ):
        if names:
            yield f"{word}\n{', '.join(names)}"
    for name, before, after in found.settings:
        yield f"setting        \n{name}: {show.plain(json.dumps(before), 80)} → {show.plain(json.dumps(after), 80)}"


def print_failing(stream: TextIO, nodes: Iterable[Node]) -> None:
    """The hosts where jobs would be held now."""
    out = Lines(console(stream))
    for node in nodes:
        for found in node.failing():
            where = show.folded(found.subjects) if found.subjects else found.observed
            out.line(("fails now ", "bold red"), (node.name, "bold"), f"  {found.check}: {show.plain(where, 200)}")


def print_lacking(stream: TextIO, settings: Mapping[str, Mapping[str, str]], reload: bool) -> None:
    """The lines that slurm.conf lacks on hosts; `settings` are theirs, names in small letters."""
    out = Lines(console(stream))
    for text, hosts in _together((host, _lacking(found)) for host, found in settings.items()):
        if text:
            out.line(
                ("slurm.conf", "yellow"), f" lacks on {nodeset.fold(hosts)} (the same on every host of the cluster):"
            )
            for line in text.splitlines():
                out.whole((line, ""), indent=INDENT)
            out.line("--write-slurm-conf writes them; then, or after writing them by hand: scontrol reconfigure")
        elif reload:
            out.line(("Slurm     ", "green"), f"calls the guard on {nodeset.fold(hosts)}")


def _lacking(settings: Mapping[str, str]) -> str:
    found = guardinstall.missing(settings)
    lines = [f"{name}={value}" for name, value in found.items()]
    for name, value in found.items():
        there = settings.get(name.lower(), "")
        if value.startswith("/") and there:
            lines.append(f"# {name}={show.plain(there, 200)} is there now: let it call {value}, and end as that ends")
    return "\n".join(lines)


def print_gres(stream: TextIO, nodes: Iterable[Node]) -> None:
    """What gres.conf lacks."""
    out = Lines(console(stream))
    for text, hosts in _together((node.name, _slurm_gres.lacking(node.facts)) for node in nodes):
        if text:
            names = nodeset.fold(hosts)
            out.line(("gres.conf ", "yellow"), f" lists no GPUs of {names}; by what was read there it would be:")
            for line in text:
                out.whole((f"NodeName={names} {line}", ""), indent=INDENT)
            out.line("(or AutoDetect=nvml alone, where slurmd was built with NVML)", indent=INDENT)


def print_running(stream: TextIO, nodes: Sequence[Node], there: Mapping[str, Answer]) -> None:
    """What the running Slurm says in the end."""
    asked = {node.name: there.get(node.name, Answer()).slurm for node in nodes if node.slurm}
    print_lacking(stream, {host: found for host, found in asked.items() if found is not None}, reload=True)
    silent = [host for host, found in asked.items() if found is None]
    if silent:
        out = Lines(console(stream))
        out.line(("Slurm     ", "yellow"), f"cannot be asked on {nodeset.fold(silent)}: scontrol show config")


def print_not_reached(stream: TextIO, lost: Iterable[HostResult]) -> None:
    out = Lines(console(stream))
    for each in lost:
        out.line((f"{each.state}  ", "bold red"), (each.host, "bold"), f"  {show.plain(each.message)}")
