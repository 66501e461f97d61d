"""Upgrade hosts in service to another lock: in batches, measured before and after, and rolled back if slower.

The driver's packages move in one transaction of the package manager (role `driver`): together or not at all. What a host had
before is written down (held.json) before anything is touched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from nodetune.api.model import HostFacts
from nodetune.foundation import text
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, TOO_SLOW
from nodetune.provision.decide import VersionDecision
from nodetune.provision.lock import upstream
from nodetune.provision.package_data import Needed, moves_with_driver
from nodetune.provision.record import DONE, NOTHING, STOPPED, Record, Results, StageResult, failed
from nodetune.provision.stages import step
from nodetune.provision.steps import Steps
from nodetune.remediation.batches import batches
from nodetune.verify.before_after import AFTER, UNCHANGED, BeforeAfterResult
from nodetune.verify.compare import MIN_RUNS
from nodetune.verify.run import HostVerification

STAGES = ("preflight", "drain", "before", "packages", "reboot", "audit", "after", "back", "resume")
"""`back` only where something went wrong: the versions held before, a reboot, measured once more."""

StageAction = Callable[[Sequence[str]], Results]


class Upgrade:
    """One upgrade. The work and the record are those of a provision."""

    def __init__(self, work: Steps, record: Record) -> None:
        self._work, self._record = work, record
        self._suite = work.measured(MIN_RUNS)
        self._before_after = work.before_after(self._suite, self._keep)
        self._when = "before"
        """When figures are measured now, for their name in the record; `back` is after a rollback."""

        self._verifications: dict[str, HostVerification] = {}

    def run(self) -> int:
        """Run the upgrade and return the exit code. The record is complete whatever happens."""
        request, why = self._work.request, "the run ended earlier"
        try:
            self._step("preflight", list(self._record.hosts), self._work.preflight)
            todo = [host for host in self._record.alive if self._work.decisions[host].changes()]
            same = [host for host in self._record.alive if host not in todo]
            for stage in STAGES[1:]:
                self._record.note(stage, dict.fromkeys(same, StageResult(NOTHING, "its packages are as locked")))
            for batch in batches(sorted(todo), request.canary, request.batch):
                self._batch(batch, bool(request.drain))
                why = self._stops(batch)
                if why:
                    break
            self._work.give_back(self._record.alive)
        finally:
            self._record.close(self._work.stopped or why)
        return self._record.code

    def _stops(self, batch: Sequence[str]) -> str:
        """Return why no further batch starts; empty if the last one completed."""
        broken = [host for host in batch if self._record.broke_at(host)]
        return self._work.stopped or (f"not started: the upgrade failed on {', '.join(broken)}" if broken else "")

    def _step(self, stage: str, hosts: Sequence[str], do: StageAction) -> list[str]:
        """Run one stage; return the hosts on which it completed."""
        step(self._record, stage, hosts, do, self._work)
        return [host for host in hosts if not self._record.broke_at(host)]

    def _batch(self, batch: Sequence[str], drain: bool) -> None:
        free = self._step("drain", batch, self._work.drain if drain else _not_drained)
        touched = self._step("before", free, self._before) if not self._work.stopped else []
        well = touched
        work = self._work
        changing = {"packages": work.packages, "reboot": work.reboot, "audit": self._audit, "after": self._after}
        for stage, do in changing.items():
            well = self._step(stage, well, do) if not self._work.stopped else []
        if self._work.stopped:
            return
        back = [host for host in touched if host not in well and self._is_touched(host)]
        self._step_back(back)
        untouched = [host for host in touched if host not in well and host not in back]
        self._record.note("back", {host: StageResult(NOTHING, "no figures became worse") for host in well})
        self._record.note("back", {host: StageResult(NOTHING, "no packages were changed") for host in untouched})
        stages = self._record.hosts
        self._resume([host for host in batch if host not in back or stages[host]["back"].ok])

    def _audit(self, hosts: Sequence[str]) -> Results:
        """Report findings that the host had before the upgrade; only those that gate are failures."""
        return self._work.audit(hosts, gating_only=True)

    def _is_touched(self, host: str) -> bool:
        """Return whether packages may have changed: a transaction that was refused has changed none."""
        facts = self._work.seen([host]).get(host)
        return not isinstance(facts, HostFacts) or self._work.differs(facts)

    def _keep(self, _when: str, verifications: Sequence[HostVerification]) -> None:
        self._verifications = {each.host: each for each in verifications}
        self._work.keep(f"{self._when}-verify", verifications, self._suite)

    def _before(self, hosts: Sequence[str]) -> Results:
        self._when = "before"
        stopped = self._before_after.before(hosts)
        self._stop(stopped)
        return {host: _known(self._verifications.get(host), stopped) for host in hosts}

    def _after(self, hosts: Sequence[str]) -> Results:
        self._when = "after"
        stopped = self._before_after.after(hosts)
        self._stop(stopped)
        result = self._before_after.result()
        return {host: failed(stopped) if stopped else _judged(result, host) for host in hosts}

    def _stop(self, why: str) -> None:
        self._work.operations.stopped = self._work.stopped or why

    def _step_back(self, hosts: Sequence[str]) -> None:
        """Put back what was there, and see whether it is as it was. The failure of the upgrade itself stays on record."""
        broke = {host: self._record.broke_at(host) for host in hosts}
        step(self._record, "back", hosts, lambda each: self._back(each, broke), self._work)

    def _back(self, hosts: Sequence[str], broke: Mapping[str, str]) -> Results:
        work = self._work
        work.decisions |= {host: going_back(work.decisions[host]) for host in hosts}
        found = work.packages(hosts)
        left = [host for host in hosts if found[host].ok]
        found |= work.reboot(left) if left else {}
        measured = [host for host in left if found[host].ok and broke[host] == "after"]
        if measured and not work.stopped:
            found |= self._measured_again(measured)
        return {host: self._told(host, each) for host, each in found.items()}

    def _told(self, host: str, came: StageResult) -> StageResult:
        again = f"driver {self._work.decisions[host].versions.driver} restored; {came.message or 'it runs'}"
        return replace(came, state=DONE, message=again) if came.ok else came

    def _measured_again(self, hosts: Sequence[str]) -> Results:
        self._when = "back"
        self._stop(self._before_after.after(hosts))
        slower = {each.before.host for each in self._before_after.result().worse}
        still = failed("the previous versions are back and it is still slower: check the hardware", TOO_SLOW)
        return {host: still if host in slower else StageResult(DONE, "as fast as before") for host in hosts}

    def _resume(self, fit: Sequence[str]) -> None:
        """Resume what was upgraded, what was not changed, and what was restored."""
        self._work.give_back(fit)
        left = self._work.operations.left_drained
        drained = {host: StageResult(NOTHING, f"left drained: {left[host]}") for host in fit if host in left}
        self._record.note("resume", {**dict.fromkeys(fit, StageResult()), **drained})


def _not_drained(hosts: Sequence[str]) -> Results:
    return dict.fromkeys(hosts, StageResult(NOTHING))


def _known(verification: HostVerification | None, stopped: str) -> StageResult:
    """Return the result of the measurement before: a host that was not measured is not upgraded."""
    if stopped or verification is None:
        return failed(stopped or STOPPED)
    if verification.state != "ok":
        return failed(f"{verification.state}: {verification.message.partition('; --allow-busy')[0]}", INCOMPLETE)
    if not verification.verdicts:
        reasons = "; ".join(dict.fromkeys(each.reason for each in verification.unmeasured))
        return failed(f"nothing could be measured, so nothing was upgraded: {reasons}", INCOMPLETE)
    return StageResult(DONE, f"{text.count(len(verification.verdicts), 'figure')}, {MIN_RUNS} times")


def _judged(result: BeforeAfterResult, host: str) -> StageResult:
    """Return which figures fell by more than noise, and which can no longer be measured."""
    fell = [each for each in result.worse if each.before.host == host]
    if fell:
        told = "; ".join(f"{each.before.name} {each.change:+.1%}" for each in fell[:4])
        return failed(f"slower than before: {told}{' …' if len(fell) > 4 else ''}", TOO_SLOW)
    lost = [each for each in result.missing if each.host == host and each.when == AFTER and each.state != UNCHANGED]
    if lost:
        return failed(f"no longer measured: {'; '.join(each.message for each in lost[:3])}", END_STATE_MISSED)
    return StageResult(DONE, "no slower than before")


def going_back(decision: VersionDecision) -> VersionDecision:
    """Return the decision that restores the held versions.

    Packages that were not there before are no longer requested, and a part without packages is dropped (its units would
    not exist).
    """
    held = decision.held.packages
    parts = {
        part: replace(needed, packages=tuple(name for name in needed.packages if name in held))
        for part, needed in decision.wanted.parts.items()
    }
    if "driver" in parts and parts["driver"].packages != decision.wanted.parts["driver"].packages:
        parts["driver"] = replace(parts["driver"], packages=_driver_before(decision, parts))
    parts = {part: needed for part, needed in parts.items() if needed.packages}
    wanted = replace(decision.wanted, parts=parts)
    return replace(decision, wanted=wanted, versions=decision.held, held=decision.versions)


def _driver_before(decision: VersionDecision, parts: Mapping[str, Needed]) -> tuple[str, ...]:
    """Return the driver's packages under their names before the upgrade.

    These are all packages that had its version and belong to no other part.
    """
    held = decision.held
    others = {name for part, needed in parts.items() if part != "driver" for name in needed.packages}
    family = (name for name in sorted(held.packages) if moves_with_driver(name) and name not in others)
    return tuple(name for name in family if upstream(held.packages[name]) == held.driver)
