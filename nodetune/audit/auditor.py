"""Judge the facts of one host, of saved files, and of hosts that are compared with each other."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodetune.api.model import Each, Finding, FleetFinding, HostFacts, HostResult, Value, Waiver
from nodetune.audit import evaluate, reused_verdicts
from nodetune.audit.selection import Selection
from nodetune.audit.summary import OneCause
from nodetune.config import profile
from nodetune.facts import document
from nodetune.facts.saved import Rules, Saved, missing, whose
from nodetune.foundation import UserError, text, time_limit
from nodetune.foundation.yaml_lines import FileError

if TYPE_CHECKING:
    from nodetune.api.device import Device
    from nodetune.audit import fleet
    from nodetune.hosts.target import Target

LookOf = Callable[[HostFacts], Any]
"""Makes of facts what the history keeps; the result of the host brings it there."""

MAX_SECONDS = 10.0
"""Limit for judging one host. Judging the largest real hosts takes a hundredth of it."""


class Auditor:
    """Turns the facts of hosts into findings. Each stack of overlays is resolved once."""

    def __init__(self, selection: Selection, today: str = "", look_of: LookOf | None = None) -> None:
        self._selection = selection
        self._look_of = look_of
        self._today = today or _today()
        self._resolved: dict[
            tuple[tuple[str, ...], int], tuple[profile.Profile, reused_verdicts.CheckEvaluator, OneCause]
        ] = {}

    def _profile_of(self, facts: HostFacts) -> tuple[profile.Profile, reused_verdicts.CheckEvaluator, OneCause, str]:
        """Return the profile of a host, what judges by its checks, what joins findings, and why it is this profile."""
        site = self._selection.site_of(facts.host)
        names, reason = profile.matching(facts, self._selection.profiles or (site.profile if site else ()))
        key = names, id(site)
        if key not in self._resolved:
            chosen = profile.resolve(names, site)
            wanted = [check for check in chosen.checks if self._selection.wants(check)]
            ready = [evaluate.PreparedCheck(check, gates=check.id in chosen.gates) for check in wanted]
            self._resolved[key] = chosen, reused_verdicts.CheckEvaluator(ready), OneCause(wanted)
        return *self._resolved[key], reason

    def judged(self, probed: HostResult) -> tuple[HostResult, fleet.HostValues | None]:
        """Return the audit of a host without its facts, and its row for the comparison with other hosts.

        If the facts of a host cannot be judged in time, only that host fails. Raise UserError for a user's mistake.
        """
        collector = self._selection.collector
        return self._in_time(probed, lambda facts: collector.row(facts) if collector else None)

    def _in_time(
        self, probed: HostResult, row_of: Callable[[HostFacts], fleet.HostValues | None]
    ) -> tuple[HostResult, fleet.HostValues | None]:
        if not probed.facts:
            return probed, None
        try:
            with time_limit.limited(MAX_SECONDS):
                row = row_of(probed.facts)
                return self._result(probed), row
        except UserError:
            raise
        except time_limit.OutOfTimeError:
            return _failed(
                probed, f"its facts were not judged: this took more than {MAX_SECONDS:g} s of CPU time"
            ), None
        except Exception as problem:  # noqa: BLE001  (no host ends the work for the others)
            return _failed(probed, f"its facts cannot be judged: {text.plain(repr(problem), 200)}"), None

    def alone(self, probed: HostResult) -> HostResult:
        """Return the audit of the only host of a run: no other host waits for it or is compared, except a reference."""
        if self._selection.between and self._selection.between.reference:
            return self.audit(probed)
        return self._in_time(probed, lambda _: None)[0]

    def _result(self, probed: HostResult) -> HostResult:
        if not probed.facts:
            return probed
        look = self._look_of(probed.facts) if self._look_of else None
        return replace(self.result(probed.facts, probed.seconds), message=probed.message, look=look)

    def result(self, facts: HostFacts, seconds: float = 0.0) -> HostResult:
        """Judge the facts of one host."""
        chosen, judge, one_cause, reason = self._profile_of(facts)
        findings = judge.audit(facts)
        waived = _waived(findings, chosen.waivers, facts.host, self._today)
        of_host = _named(waived, facts)
        return HostResult(
            facts.host,
            "ok",
            findings=one_cause.joined(waived, of_host),
            devices=of_host,
            machine=_machine(facts),
            profile=chosen.name,
            profile_reason=reason,
            seconds=seconds,
            off=chosen.off,
            at=text.sound_time(facts.about.get("time")),
            rests_on=self._selection.against.rests_on(facts) if self._selection.against else {},
        )

    def audit(self, probed: HostResult) -> HostResult:
        """Return the audit of a host, and collect its row."""
        result, row = self.judged(probed)
        self.take(result, row)
        return result

    def take(self, result: HostResult, row: fleet.HostValues | None) -> None:
        """Collect the row of a host for the comparison with other hosts."""
        if self._selection.collector and row:
            self._selection.collector.take(result.host, row)


def _named(findings: Iterable[Finding], facts: HostFacts) -> tuple[Device, ...]:
    """Return the devices that failing findings name."""
    about = [found for found in findings if found.subjects and found.status in ("fail", "waived")]
    if not about:
        return ()
    from nodetune.audit import devices  # most hosts have no finding about a device

    return devices.named(about, facts)


def _machine(facts: HostFacts) -> str:
    """Return the GPUs of a host in short: `8x H200`."""
    names = facts.facts.get("gpu.names")
    of = names.of.values() if isinstance(names, Each) else ()
    models = Counter(text.plain(one.value, 60).removeprefix("NVIDIA ") for one in of if isinstance(one, Value))
    return ", ".join(f"{count}x {model}" for model, count in models.items())


def _failed(probed: HostResult, message: str) -> HostResult:
    return HostResult(probed.host, "bad facts", message, seconds=probed.seconds)


def expect(targets: Iterable[Target], selection: Selection) -> None:
    """Announce the hosts of this run to the site files and the collector. Raise FileError, fleet.ReferenceHostError."""
    selection.expect({target.name: target.ranks for target in targets})
    if selection.collector:
        selection.collector.expect({target.name: target.groups for target in targets})


def compared(results: Iterable[HostResult], selection: Selection, today: str = "") -> list[HostResult]:
    """Add the findings of the comparison between hosts. Raise fleet.ReferenceHostError."""
    known = list(results)  # first: reading the results may fill the collector
    found = _between(known, selection)
    if selection.between and len(known) == 1 and not found and not selection.candidates:
        raise FileError("one host cannot be compared with itself: select several hosts or give --reference")
    day = today or _today()
    comparisons = selection.collector.comparisons if found and selection.collector else ()
    one_cause = OneCause(each.as_check() for each in comparisons)
    every = []
    for result in known:
        mine = found[result.host].pop(0) if result.state == "ok" and found.get(result.host) else ()
        site = selection.site_of(result.host) if mine else None
        waived = _waived(mine, site.waivers if site else (), result.host, day)
        joined = one_cause.joined((*result.findings, *waived), result.devices) if waived else result.findings
        every.append(replace(result, findings=joined) if waived else result)
    return every


def _between(results: Sequence[HostResult], selection: Selection) -> dict[str, list[tuple[FleetFinding, ...]]]:
    """Return host → its findings from the comparison. Raise fleet.ReferenceHostError."""
    if selection.between is None or (len(results) < 2 and not selection.between.reference):
        return {}
    from nodetune.audit import fleet  # one host alone needs none

    return fleet.findings(selection.collector) if selection.collector else {}


def _waived(findings: Iterable[Finding], waivers: Sequence[Waiver], host: str, today: str) -> tuple[Finding, ...]:
    if not waivers:
        return tuple(findings)
    from nodetune.config.waivers import waive  # most sites have none

    return waive(findings, waivers, host, today)


def _today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def audit_files(
    saved: Saved, selection: Selection, rules: Rules | None = None, look_of: LookOf | None = None
) -> Iterator[HostResult]:
    """Judge a saved file, or those of a folder. A host with a bad or missing file counts as unreachable.

    Raises document.FactsError (the one file, or no file at all), InventoryError, yaml_lines.FileError (nothing
    selected) or OSError.
    """
    selection.validate()  # a selection that names nothing must not read as compliant
    held = rules or Rules(named=saved.targets is not None)
    expect_saved(saved, selection)
    if not saved.is_folder:
        return iter([Auditor(selection, look_of=look_of).alone(held.aged(saved.facts(), saved.path))])
    from nodetune.audit import processes  # one file needs no more than this one

    if saved.targets is not None:
        expect(saved.targets, selection)
    found, without = saved.files()
    judged = processes.judged(
        Auditor(selection, look_of=look_of),
        {host: (host, file) for host, file in found.items()},
        lambda part: ((host, held.read(file, host)) for host, file in part),
    )
    return chain((missing(host, saved.path) for host in without), judged)


def expect_saved(saved: Saved, selection: Selection) -> None:
    """Give the site files the inventory groups of the hosts with saved facts. Raise FileError, as `saved` does."""
    if saved.targets is None or selection.site is None:
        return
    ranks = {target.name: target.ranks for target in saved.targets}
    names = [saved.facts().host] if not saved.is_folder else [path.stem for path in saved.files()[0].values()]
    of_files, _ = whose([Path(f"{name}.json") for name in names], ranks)
    selection.expect({path.stem: ranks[host] for host, path in of_files.items()})


def saved_facts(saved: Saved) -> list[HostResult]:
    """Return saved facts of any age, unjudged, sorted by host. Raise document.FactsError, InventoryError."""
    if not saved.is_folder:
        return [_of_file(saved.facts())]
    found, without = saved.files()
    return by_name([*map(_read, found.values()), *(missing(host, saved.path) for host in without)])


def _read(path: Path) -> HostResult:
    try:
        return _of_file(document.load(path, regular=True))
    except document.FactsError as problem:
        return HostResult(path.stem, "bad facts", str(problem))


def _of_file(facts: HostFacts) -> HostResult:
    return HostResult(facts.host, "ok", facts=facts)


def by_name(results: Iterable[HostResult]) -> list[HostResult]:
    """Sort results by host."""
    return sorted(results, key=lambda result: result.host)
