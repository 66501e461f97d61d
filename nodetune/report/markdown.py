"""An audit as Markdown (CommonMark with tables), for pull requests, job summaries and tickets.

Text from a host appears only in code spans, where no markup, link, mention or HTML is recognised.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from nodetune.api.model import SEVERITIES, Check, HostResult, disruption_name
from nodetune.audit import explain
from nodetune.audit.summary import Summary, alike, seen, summarise
from nodetune.foundation import by_key, nodeset
from nodetune.foundation import text as plain_text
from nodetune.report import sections
from nodetune.report.sections import UNKNOWN, CauseLine, CommandOptions, Member, Section
from nodetune.report.text import host_names

MAX_VARIANTS = 6
MAX_LENGTH = 300
MARKUP = re.compile(r"([\\`*_\[\]<>&|~#])")


def write(
    results: Iterable[HostResult],
    stream: TextIO,
    checks: Mapping[str, Check],
    commands: CommandOptions | None = None,
) -> None:
    """Write the sections of the audit as tables with their commands, then each finding with its reason and steps.

    `commands` has the options for proposed commands.
    """
    kept: list[HostResult] = []
    stream.write(f"# nodetune audit\n\n{_totals(summarise(_keeping(results, kept)))}\n")
    stream.writelines(
        f"\nBy {code(why)}: {code(nodeset.fold(hosts), 160)}\n" for why, hosts in host_names.aged(kept).items()
    )
    report = sections.build(kept, commands, every=True)
    stream.writelines(_section(each) for each in report.sections if each.name != UNKNOWN)
    members = [
        member for each in report.sections if each.name != UNKNOWN for line in each.lines for member in line.members
    ]
    causes = by_key(
        ((found.severity, found.check), (result, found))
        for result, found in sorted(members, key=lambda each: each[1].rank)
    )
    stream.writelines(["\n## Each finding\n"] if causes else [])
    stream.writelines(_finding(mine, checks.get(check)) for (_, check), mine in causes.items())
    stream.write(_waived(kept))
    stream.writelines(_unknown(each) for each in report.sections if each.name == UNKNOWN)
    stream.write(_unreached(kept))


def _keeping(results: Iterable[HostResult], kept: list[HostResult]) -> Iterator[HostResult]:
    """Yield the results and keep each without facts and passed checks, so that thousands of hosts fit in memory."""
    for result in results:
        yield result
        told = tuple(found for found in result.findings if found.status in ("fail", "waived", "unknown"))
        kept.append(replace(result, facts=None, findings=told))


def code(text: str, longest: int = MAX_LENGTH) -> str:
    """Return a code span of one line that contains any `text`."""
    plain = " ".join(plain_text.plain(text, longest).split()) or " "
    fence = "`" * (max(map(len, re.findall("`+", plain)), default=0) + 1)
    pad = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def cell(text: str) -> str:
    """Escape text for a table cell: a bar ends the cell even in a code span (GitHub's specification, 4.10)."""
    return text.replace("|", "\\|")


def prose(text: str) -> str:
    """Escape markup in nodetune's own text. Addresses stay unchanged so that viewers make links."""
    words = " ".join(text.split()).split(" ")
    return " ".join(word if word.startswith("https://") else MARKUP.sub(r"\\\1", word) for word in words)


def _totals(summary: Summary) -> str:
    failing = [f"**{summary.failing[each]} {each}**" for each in reversed(SEVERITIES) if summary.failing.get(each)]
    words = {"pass": "passed", "skip": "not applicable", "unknown": "unknown", "waived": "waived"}
    rest = [f"{summary.statuses[each]} {word}" for each, word in words.items() if summary.statuses.get(each)]
    lost = f", **{summary.hosts - summary.reached} not reached**" if summary.reached < summary.hosts else ""
    hosts = f"{plain_text.count(summary.reached, 'host')} audited{lost}"
    if not summary.reached:
        return hosts
    return f"{hosts}: {', '.join(failing) + ' findings' if failing else 'no findings'}" + "".join(
        f" · {each}" for each in rest
    )


def _section(section: Section) -> str:
    head = f"\n## {section.title} ({plain_text.count(section.findings, 'finding')})\n"
    table = "| severity | finding | what it is → what it will be | hosts |\n| --- | --- | --- | --- |\n"
    return f"{head}\n{table}{''.join(map(_row, section.lines))}\n**To do.** {code(section.command, 1000)}\n"


def _row(line: CauseLine) -> str:
    many = f"{len(line.hosts)}: " if len(line.hosts) > 1 else ""
    hosts = f"{many}{code(nodeset.fold(line.hosts), 80)}"
    told = f"{code(line.subject)} {code(line.text)}"
    if line.others:
        told += f" and other values on {plain_text.count(line.others, 'host')}"
    parts = f" +{len(line.parts)}" if line.parts else ""
    return f"| {line.severity} | {cell(code(line.check))}{parts} | {cell(told)} | {cell(hosts)} |\n"


def _finding(members: Sequence[Member], check: Check | None) -> str:
    found = members[0][1]
    lines = [f"\n### {found.severity}: {code(found.check)}\n", f"{prose(found.title)}.\n"]
    lines += _variants(members)
    told = explain.explain(check).sections if check else {}
    if told.get("Why it matters"):
        lines += ["", f"**Why it matters.** {prose(told['Why it matters'])}"]
    if found.fix:
        lines += ["", f"**Fix.** {code(found.fix.target)} (disruption: {disruption_name(found.fix.disruption)})"]
    elif found.manual:
        lines += ["", f"**Manually.** {prose(found.manual)}"]
    if told.get("Sources"):
        lines += ["", f"**Sources.** {prose(told['Sources'])}"]
    return "\n".join(lines) + "\n"


def _variants(members: Sequence[Member]) -> list[str]:
    variants = by_key(((seen(result, found), found.wanted, found.reason), result.host) for result, found in members)
    ordered = sorted(variants.items(), key=lambda item: -len(item[1]))
    lines = [_variant(*told, hosts) for told, hosts in ordered[:MAX_VARIANTS]]
    if len(ordered) > MAX_VARIANTS:
        rest = [host for _, hosts in ordered[MAX_VARIANTS:] for host in hosts]
        lines.append(f"- {len(ordered) - MAX_VARIANTS} other values on {code(nodeset.fold(rest), 160)}")
    return lines


def _variant(observed: str, wanted: str, reason: str, hosts: Sequence[str]) -> str:
    against = f", wanted {code(wanted)}" if wanted else ""
    because = f" ({code(reason)})" if reason else ""
    return f"- {code(nodeset.fold(hosts), 160)}: observed {code(observed)}{against}{because}"


def _waived(results: Iterable[HostResult]) -> str:
    rows = [
        f"- {code(check)} on {code(nodeset.fold(hosts), 160)}: {code(reason)}\n"
        for (check, reason), hosts in alike(results, "waived").items()
    ]
    return "".join(["\n## Waived\n\n", *rows]) if rows else ""


def _unknown(section: Section) -> str:
    rows = [
        f"- {', '.join(map(code, (line.check, *line.parts)))} on {code(nodeset.fold(line.hosts), 160)}: {code(line.text)}\n"
        for line in section.lines
    ]
    return "".join(["\n## Unknown\n\n", *rows])


def _unreached(results: Sequence[HostResult]) -> str:
    lost = ((each.state, each.host, each.message) for each in results if each.state != "ok")
    rows = [
        f"- {code(nodeset.fold(hosts), 160)}: {code(state)}, {code(message)}\n"
        for state, found in host_names.causes(lost).items()
        for message, hosts in found
    ]
    return "".join(["\n## Not reached\n\n", *rows]) if rows else ""
