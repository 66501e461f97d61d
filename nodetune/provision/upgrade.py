"""Another lock on hosts that work: wave by wave, measured before and after, and taken back where it made something slower.

The driver's packages move in one transaction of the package manager (role `driver`): together or not at all. What a host had
before is written down (held.json) before anything is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from nodetune import apply
from nodetune.gain import AFTER, UNCHANGED, Gain, Gauge
from nodetune.model import HostFacts
from nodetune.outcome import INCOMPLETE, NOT_REACHED, TOO_SLOW
from nodetune.proof import Proof
from nodetune.provision.catalogue import Needed
from nodetune.provision.decide import Decision
from nodetune.provision.lock import moves_with_driver, upstream
from nodetune.provision.record import DONE, NOTHING, STOPPED, Came, Record, Results, failed
from nodetune.provision.stages import Say, step
from nodetune.provision.work import Work
from nodetune.report import verify_data
from nodetune.runs import Run
from nodetune.verdict import Figure
from nodetune.verdict.compare import FEWEST
from nodetune.verdict.suites import Wanted

STAGES = ("look", "drain", "before", "packages", "reboot", "audit", "after", "back", "resume")
"""`back` only where something went wrong: the versions held before, a reboot, measured once more."""

Step = Callable[[Sequence[str]], Results]


@dataclass(frozen=True)
class Waves:
    """In which waves, and whether Slurm is asked to let go first."""

    canary: int = 1
    batch: str = ""
    drain: bool = False


class Upgrade:
    """One upgrade. The work and the record are those of a provision."""

    def __init__(self, work: Work, record: Record, gauge: Gauge, kept: Kept, say: Say) -> None:
        self._work, self._record, self._gauge, self._kept, self._say = work, record, gauge, kept, say

    def run(self, waves: Waves) -> int:
        """Raises apply.BadBatch before anything is done. Returns the exit code; the record is whole whatever happens."""
        apply.waves(["any"], waves.canary, waves.batch)
        why = "the run ended before"
        try:
            self._step("look", list(self._record.hosts), self._look)
            todo = [host for host in self._record.alive if self._work.decisions[host].changes()]
            same = [host for host in self._record.alive if host not in todo]
            for stage in STAGES[1:]:
                self._record.note(stage, dict.fromkeys(same, Came(NOTHING, "its packages are as locked")))
            for wave in apply.waves(sorted(todo), waves.canary, waves.batch):
                self._wave(wave, waves.drain)
                why = self._stops(wave)
                if why:
                    break
            self._work.give_back(self._record.alive)
        finally:
            self._record.close(self._work.stopped or why)
        return self._record.code

    def _stops(self, wave: Sequence[str]) -> str:
        """Why no further wave is begun; empty where the last one went well."""
        broken = [host for host in wave if self._record.broke_at(host)]
        return self._work.stopped or (f"not begun: the upgrade failed on {', '.join(broken)}" if broken else "")

    def _step(self, stage: str, hosts: Sequence[str], do: Step) -> list[str]:
        """One stage; the hosts on which it went well."""
        step(self._record, stage, hosts, do, self._work, self._say)
        return [host for host in hosts if not self._record.broke_at(host)]

    def _look(self, hosts: Sequence[str]) -> Results:
        found = self._work.look(hosts)
        return {host: self._upgradable(host, came) if came.ok else came for host, came in found.items()}

    def _upgradable(self, host: str, came: Came) -> Came:
        decision, running = self._work.decisions[host], self._work.running(host)
        installed = decision.held.driver
        if decision.driver and not installed:
            return failed("there is no driver of NVIDIA's packages to upgrade: provision this host without --upgrade")
        if decision.driver and running != installed:
            told = (
                f"driver {installed} is installed and {running or 'none'} runs, as after an upgrade that was cut short"
            )
            return failed(f"{told}: provision this host without --upgrade")
        return came

    def _wave(self, wave: Sequence[str], drain: bool) -> None:
        free = self._step("drain", wave, self._work.drain if drain else _not_drained)
        touched = self._step("before", free, self._before) if not self._work.stopped else []
        well = touched
        for stage, do in self._changing().items():
            well = self._step(stage, well, do) if not self._work.stopped else []
        if self._work.stopped:
            return
        back = [host for host in touched if host not in well and self._is_touched(host)]
        self._step_back(back)
        untouched = [host for host in touched if host not in well and host not in back]
        self._record.note("back", {host: Came(NOTHING, "what was measured did not fall") for host in well})
        self._record.note("back", {host: Came(NOTHING, "no package had moved") for host in untouched})
        stages = self._record.hosts
        self._resume([host for host in wave if host not in back or stages[host]["back"].ok])

    def _changing(self) -> dict[str, Step]:
        work = self._work
        return {"packages": work.packages, "reboot": work.reboot, "audit": self._audit, "after": self._after}

    def _audit(self, hosts: Sequence[str]) -> Results:
        """An upgrade may leave findings that the host had before: they are told, and only what gates is a failure."""
        return self._work.audit(hosts, gating_only=True)

    def _is_touched(self, host: str) -> bool:
        """Whether packages may have moved: a transaction that was refused before it began has moved none."""
        facts = self._work.seen([host]).get(host)
        return not isinstance(facts, HostFacts) or self._work.differs(facts)

    def _before(self, hosts: Sequence[str]) -> Results:
        self._kept.phase = "before"
        stopped = self._gauge.before(hosts)
        self._stop(stopped)
        return {host: _known(self._kept.proofs.get(host), stopped) for host in hosts}

    def _after(self, hosts: Sequence[str]) -> Results:
        self._kept.phase = "after"
        stopped = self._gauge.after(hosts)
        self._stop(stopped)
        gain = self._gauge.gain()
        return {host: failed(stopped) if stopped else _judged(gain, host) for host in hosts}

    def _stop(self, why: str) -> None:
        self._work.field.stopped = self._work.stopped or why

    def _step_back(self, hosts: Sequence[str]) -> None:
        """Put back what was there, and see whether it is as it was. The failure of the upgrade itself stays on record."""
        broke = {host: self._record.broke_at(host) for host in hosts}
        step(self._record, "back", hosts, lambda given: self._back(given, broke), self._work, self._say)

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

    def _told(self, host: str, came: Came) -> Came:
        again = f"driver {self._work.decisions[host].versions.driver} again; {came.message or 'it runs'}"
        return replace(came, state=DONE, message=again) if came.ok else came

    def _measured_again(self, hosts: Sequence[str]) -> Results:
        self._kept.phase = "back"
        self._stop(self._gauge.after(hosts))
        slower = {each.before.host for each in self._gauge.gain().worse}
        still = failed("the versions of before are back, and it is still slower: look at the hardware", TOO_SLOW)
        return {host: still if host in slower else Came(DONE, "measured as before") for host in hosts}

    def _resume(self, fit: Sequence[str]) -> None:
        """Into service: what was upgraded, what was not touched, and what is again as it was."""
        self._work.give_back(fit)
        left = self._work.field.left_drained
        told = {host: Came(NOTHING, "left drained: " + left[host]) if host in left else Came() for host in fit}
        self._record.note("resume", told)


class Kept:
    """Keeps what a gauge measures in the record: before-verify, after-verify, and back-verify once something was taken back."""

    def __init__(self, run: Run, wanted: Wanted, asked: str) -> None:
        self._run, self._wanted, self._asked = run, wanted, asked
        self.phase = "before"
        self.proofs: dict[str, Proof] = {}

    def __call__(self, _when: str, proofs: Sequence[Proof]) -> None:
        self.proofs = {each.host: each for each in proofs}
        self._run.save(f"{self.phase}-verify", verify_data.document(proofs, self._wanted, self._asked))


def _not_drained(hosts: Sequence[str]) -> Results:
    return dict.fromkeys(hosts, Came(NOTHING))


def _known(proof: Proof | None, stopped: str) -> Came:
    """A host that was not measured is not touched: nobody could tell afterwards what the upgrade did."""
    if stopped or proof is None:
        return failed(stopped or STOPPED)
    if proof.state != "ok":
        return failed(f"{proof.state}: {proof.message.partition('; --even-if-busy')[0]}", INCOMPLETE)
    if not proof.verdicts:
        reasons = "; ".join(dict.fromkeys(each.reason for each in proof.unmeasured))
        return failed(f"nothing could be measured, so nothing is upgraded: {reasons}", INCOMPLETE)
    return Came(DONE, f"{len(proof.verdicts)} figures, {FEWEST} times")


def _judged(gain: Gain, host: str) -> Came:
    """What fell beyond noise, and what can no longer be measured."""
    fell = [each for each in gain.worse if each.before.host == host]
    if fell:
        told = "; ".join(f"{_name(each.before)} {each.change:+.1%}" for each in fell[:4])
        return failed(f"slower than before: {told}{' …' if len(fell) > 4 else ''}", TOO_SLOW)
    lost = [each for each in gain.missing if each.host == host and each.when == AFTER and each.state != UNCHANGED]
    if lost:
        return failed(f"measured before and not any more: {'; '.join(each.message for each in lost[:3])}", NOT_REACHED)
    return Came(DONE, "no slower than before")


def _name(figure: Figure) -> str:
    return " ".join(dict.fromkeys(part for part in (figure.measurement, figure.metric, figure.subject) if part))


def going_back(decision: Decision) -> Decision:
    """The decision that brings the held versions back: packages that were not there before are no longer asked for, and a part
    that has none left is none (its units would be looked for in vain).
    """
    held = decision.held.packages
    parts = {
        part: replace(needed, packages=tuple(name for name in needed.packages if name in held))
        for part, needed in decision.wanted.parts.items()
    }
    if "driver" in parts and parts["driver"].packages != decision.wanted.parts["driver"].packages:
        parts["driver"] = replace(parts["driver"], packages=_driver_before(decision, parts))
    parts = {part: needed for part, needed in parts.items() if needed.packages}
    return replace(
        decision, wanted=replace(decision.wanted, parts=parts), versions=decision.held, held=decision.versions
    )


def _driver_before(decision: Decision, parts: Mapping[str, Needed]) -> tuple[str, ...]:
    """The driver's packages where they had other names before: all that were there of its version and are of no other part."""
    held = decision.held
    others = {name for part, needed in parts.items() if part != "driver" for name in needed.packages}
    kin = (name for name in sorted(held.packages) if moves_with_driver(name) and name not in others)
    return tuple(name for name in kin if upstream(held.packages[name]) == held.driver)
