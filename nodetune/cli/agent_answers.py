"""Answers of `nodetune mcp` about saved facts: equal findings and steps of many hosts as one, the worst first, of a bounded size.

A program of its own, which agent_tools.py starts: judging many hosts forks, and a server with threads must not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodetune.api.model import SEVERITIES, Finding, HostResult, at_least, fix_of
from nodetune.audit import run
from nodetune.audit.request import AuditRequest
from nodetune.audit.selection import Selection
from nodetune.audit.summary import summarise
from nodetune.cli.options import SelectionOptions
from nodetune.foundation import UserError, by_key, nodeset, parallel, text
from nodetune.foundation.stage_output import Silent
from nodetune.hosts import patterns
from nodetune.hosts.connection_options import ConnectionOptions

if TYPE_CHECKING:
    from nodetune.remediation.plan import HostPlan

MAX_BYTES, ROOM, MAX_SET, MAX_VALUES, MAX_STEPS = 20_000, 400, 400, 3, 1200
"""Of an answer: its size, and room in it for what is around it; characters of a node set, values of a finding, characters of steps."""

ASK = "for the rest, name a host or a check, a higher severity, or a larger limit"
"""How to ask for what is left out."""


def cost(told: Any) -> int:
    """Return the size of an answer, which is sent as data and, for clients that take no data, as text."""
    once = json.dumps(told)
    return len(once) + len(json.dumps(once))


def fitted(told: Mapping[str, Any], main: str, limit: int, ask: str = ASK) -> dict[str, Any]:
    """Return an answer of at most MAX_BYTES, with `limit` members of a list: the longest lists lose their ends.

    `left_out` counts what `main` lost.
    """
    whole = {name: value for name, value in told.items() if isinstance(value, list)}
    lists = {name: value[: max(0, limit)] for name, value in whole.items()}
    sizes = {name: [cost(each) + 8 for each in value] for name, value in lists.items()}
    totals = {name: sum(each) for name, each in sizes.items()}
    room = MAX_BYTES - ROOM - cost({name: [] if name in lists else value for name, value in told.items()})
    while sum(totals.values()) > room:
        longest = max(totals, key=lambda name: totals[name])
        totals[longest] -= sizes[longest].pop()
        lists[longest].pop()
    lost = {name: len(value) - len(lists[name]) for name, value in whole.items() if len(value) > len(lists[name])}
    more = {"more": f"left out: {', '.join(f'{count} {name}' for name, count in lost.items())}: {ask}"} if lost else {}
    return {**told, **lists, "left_out": lost.get(main, 0), **more}


def whole_lines(said: str) -> str:
    """Return a text of at most MAX_BYTES, and how much of it is left out."""
    kept = said
    while 2 * len(json.dumps(kept)) > MAX_BYTES - ROOM:
        kept = kept[: len(kept) * 9 // 10].rpartition("\n")[0] or kept[: len(kept) * 9 // 10]
    return kept if kept == said else f"{kept}\n… {len(said) - len(kept)} more characters: ask about fewer"


def meant(host: str, known: Sequence[str]) -> list[str]:
    """Return the hosts that a name, a node set or a pattern means; all for an empty one. Raise UserError, which names those that there are."""
    try:
        if not set(host) & set("@~/"):  # no file is read, and no expression of an agent is run
            return patterns.pick(host, known, {}) if host else [*known]
    except patterns.InventoryError:
        pass
    near = text.near(host, known)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    there = text.plain(nodeset.fold(known), MAX_SET) or "none"
    raise UserError(f"no host matches {text.plain(host, 60)!r}{hint}: the {len(known)} hosts are {there}")


def of_hosts(hosts: Sequence[str]) -> dict[str, Any]:
    """Return hosts as a node set, and their number."""
    return {"hosts": text.plain(nodeset.fold(hosts), MAX_SET), "count": len(hosts)}


@dataclass(frozen=True)
class Asked:
    """A question about saved facts: `tool` is one of TOOLS, `host`, `check` and `severity` say about what (empty: all)."""

    tool: str
    facts: str
    site: Sequence[str]
    host: str = ""
    check: str = ""
    severity: str = "info"
    status: str = "fail"
    limit: int = 20

    @property
    def counted(self) -> frozenset[str]:
        return frozenset(at_least(self.severity))

    @property
    def _selection(self) -> Selection:
        select = (self.check,) if self.check else ()
        return SelectionOptions(site=tuple(map(Path, self.site)), select=select).built()

    def results(self) -> list[HostResult]:
        """Judge the hosts, compared with all others."""
        request = AuditRequest(ConnectionOptions(), self._selection, Path(self.facts))
        return self._of_named(run.run(request, run.compared(request), Silent()))

    def _of_named(self, results: Sequence[HostResult]) -> list[HostResult]:
        named = set(meant(self.host, [each.host for each in results]))
        return [each for each in results if each.host in named]

    def plans(self) -> list[HostPlan]:
        """Plan in several processes. Return the plans without changes, of which many hosts have too much text."""
        from nodetune.remediation import plan as planning

        selection = planning.PlanSelection.of(self._selection)
        asked = self._of_named(run.saved_facts(Path(self.facts), selection, ConnectionOptions()))

        def work(part: Sequence[HostResult]) -> Generator[HostPlan, None, None]:
            for each in run.judged_with_facts(part, selection):
                yield replace(planning.plan(each, site=planning.added(selection)).without_facts(), changes=())

        shares = parallel.parts(asked, parallel.processes(len(asked)))
        plans = [*(work(asked) if len(shares) == 1 else parallel.spread(shares, work))]
        if len(plans) < len(asked):
            raise UserError("a process that planned was killed: is there enough memory?")
        return sorted(plans, key=lambda each: each.host)


def audit(asked: Asked) -> dict[str, Any]:
    results, counted = asked.results(), asked.counted

    def row(result: HostResult) -> tuple[Any, ...]:
        failing = Counter(found.severity for found in result.failing() if found.severity in counted)
        unknown = sum(1 for found in result.findings if found.status == "unknown" and found.severity in counted)
        return result.state, tuple(failing[each] for each in reversed(SEVERITIES)), unknown

    alike = by_key((row(result), result) for result in results)
    rows = [
        {
            **of_hosts([each.host for each in same]),
            "state": state,
            "message": text.plain(same[0].message),
            "failing": {name: number for name, number in zip(reversed(SEVERITIES), failing, strict=True) if number},
            "unknown": unknown,
        }
        for (state, failing, unknown), same in sorted(
            alike.items(), key=lambda each: (each[0][0] == "ok", *(-number for number in each[0][1]), -each[0][2])
        )
    ]
    return fitted({"summary": asdict(summarise(results)), "hosts": rows}, "hosts", asked.limit)


def findings(asked: Asked) -> dict[str, Any]:
    results, counted = asked.results(), asked.counted
    alike = by_key(
        ((found.check, found.severity), (result.host, found))
        for result in results
        for found in result.findings
        if found.status == asked.status and found.severity in counted
    )
    ordered = sorted(alike.values(), key=lambda same: (*same[0][1].rank, -len(same), same[0][1].check))
    told = {
        "judged": sum(each.state == "ok" for each in results),
        "findings": [_finding(same) for same in ordered],
        "not_judged": _not_reached(results),
    }
    return fitted(told, "findings", asked.limit)


def _finding(same: Sequence[tuple[str, Finding]]) -> dict[str, Any]:
    """Return equal findings of hosts as one."""
    found = same[0][1]
    todo = (
        {"fix": _fix(found)} if found.fix else {"manual": text.plain(found.manual, MAX_STEPS)} if found.manual else {}
    )
    return {
        **{name: text.plain(getattr(found, name)) for name in ("check", "severity", "title", "wanted")},
        **of_hosts([host for host, _ in same]),
        "observed": _values((host, each.observed) for host, each in same),
        "reason": _values((host, each.reason) for host, each in same),
        **({"part_of": found.part_of} if found.part_of else {}),
        **todo,
    }


def _fix(found: Finding) -> dict[str, Any]:
    fix = fix_of(found)
    told = {name: text.plain(getattr(fix, name)) for name in ("kind", "target", "disruption", "file")}
    return {**told, "value": text.plain(text.setting(fix.value, fix.unit))}


def _values(seen: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the values that most hosts have, with these hosts unless it is one value; the number of the others."""
    alike = sorted(by_key((value, host) for host, value in seen if value).items(), key=lambda each: -len(each[1]))
    several = len(alike) > 1
    rows = [{"value": text.plain(value), **(of_hosts(hosts) if several else {})} for value, hosts in alike[:MAX_VALUES]]
    return [*rows, {"value": f"{len(alike) - MAX_VALUES} other values"}] if len(alike) > MAX_VALUES else rows


def _not_reached(results: Iterable[HostResult]) -> list[dict[str, Any]]:
    lost = by_key((each.state, each) for each in results if each.state != "ok")
    return [
        {**of_hosts([each.host for each in same]), "state": state, "message": text.plain(same[0].message)}
        for state, same in lost.items()
    ]


def plan(asked: Asked) -> dict[str, Any]:
    from nodetune.remediation import plan as planning

    plans, counted = asked.plans(), asked.counted
    results = [each.result for each in plans]
    steps = by_key(
        ((found.check, fix_of(found).target, why), (host, found))
        for host, found, why in planning.steps(plans)
        if found.severity in counted
    )
    manual = by_key(
        (found.check, (result.host, found))
        for result in results
        for found in result.failing()
        if found.fix is None and found.severity in counted
    )
    ordered = sorted(steps.items(), key=lambda each: (*each[1][0][1].rank, -len(each[1])))
    told = {
        "steps": [_step(same, why) for (_, _, why), same in ordered],
        "manual": [_finding(same) for same in sorted(manual.values(), key=lambda each: (*each[0][1].rank, -len(each)))],
        "unknown": [
            {"check": check, "reason": text.plain(why), **of_hosts(hosts)}
            for (check, why), hosts in planning.unknown(results).items()
        ],
        "not_judged": _not_reached(results),
    }
    return fitted(told, "steps", asked.limit, f"{ASK}; nodetune plan --files shows the files")


def _step(same: Sequence[tuple[str, Finding]], why: str) -> dict[str, Any]:
    from nodetune.remediation import plan as planning

    found = same[0][1]
    return {
        **{name: text.plain(getattr(found, name)) for name in ("check", "severity")},
        **of_hosts([host for host, _ in same]),
        **_fix(found),
        "before": _values((host, each.observed) for host, each in same),
        "after": _values((host, planning.after(each)) for host, each in same),
        "unfixable": text.plain(why),
    }


TOOLS: Mapping[str, Callable[[Asked], dict[str, Any]]] = {"audit": audit, "findings": findings, "plan": plan}


def answer(question: str) -> str:
    """Return the answer to a question, both as JSON."""
    asked = Asked(**json.loads(question))
    return json.dumps(TOOLS[asked.tool](asked))
