"""The work of each stage, with the functions of nodetune's other commands. Hosts go through a stage together."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from nodetune.api.facts_view import FactsView
from nodetune.api.model import HostFacts
from nodetune.audit import auditor
from nodetune.audit import document as audit_document
from nodetune.audit import hosts as audit_hosts
from nodetune.facts.machine import UNKNOWN
from nodetune.foundation import file_io, json_document
from nodetune.foundation.exit_codes import INCOMPLETE
from nodetune.foundation.stage_output import Phase, measuring
from nodetune.guard.deploy import install, nodes
from nodetune.guard.deploy.playbooks import GuardPlaybooks
from nodetune.guard.deploy.request import InstallRequest, PolicySettings
from nodetune.hosts.target import Target, UnreachableError
from nodetune.provision import preflight, running_driver
from nodetune.provision import results as provision_results
from nodetune.provision.exporter import EXPORTER
from nodetune.provision.facts import HostRefusedError
from nodetune.provision.gds import GDS
from nodetune.provision.preflight import Preflight
from nodetune.provision.record import DONE, LEFT_OUT, NOTHING, STOPPED, Results, StageResult, failed
from nodetune.remediation import apply
from nodetune.remediation.host_operations import HostOperations
from nodetune.remediation.runs import record
from nodetune.remediation.runs.files import RunError
from nodetune.remediation.runs.record import Run
from nodetune.verify import baseline as baselines
from nodetune.verify import document as verify_document
from nodetune.verify import remote
from nodetune.verify.before_after import BeforeAfter, Keep
from nodetune.verify.run import HostVerification, VerifyRun
from nodetune.verify.suites import SuiteRequest

PLAY_SECONDS = 7200.0
"""For as many hosts as run at a time; DKMS builds the modules on each, which takes minutes on a slow one."""

MAX_PAST_RUNS = 5

ANSWERS = {EXPORTER: "metrics", GDS: "gds"}
"""Part → the play that asks whether it does its work: the exporter serves metrics, GPUDirect Storage passes NVIDIA's check."""


class Steps:
    """The hosts of one run. Every method takes the remaining hosts and returns the result of each."""

    def __init__(self, found: Preflight, run: Run, phase: Phase) -> None:
        self._found, self._run, self._phase = found, run, phase
        self.request, self._site = found.request, found.site
        self._connection, self._selection = found.request.connection, found.request.selection
        self.operations = HostOperations(found.targets, found.request, run, phase.heard)
        self.decisions = dict(found.decisions)
        self._verifications: dict[str, HostVerification] = {}
        self.ours: list[str] = []
        """Hosts that this run drained."""

    @property
    def stopped(self) -> str:
        return self.operations.stopped

    def begins(self, stage: str, hosts: Sequence[str]) -> None:
        """Show that a stage begins."""
        self._phase.stage(stage, len(hosts))

    def _targets(self, hosts: Iterable[str]) -> list[Target]:
        return [self.operations.targets[host] for host in hosts]

    def preflight(self, _hosts: Sequence[str]) -> Results:
        """Record what the preflight found, and what hosts have before any change."""
        for facts in self._found.facts.values():
            self._run.save_facts(facts)
        self._run.save("held", {host: preflight.held(each) for host, each in self.decisions.items()})
        return dict(self._found.came)

    def seen(self, hosts: Sequence[str]) -> dict[str, HostFacts | UnreachableError]:
        """Collect the current facts of hosts."""
        return preflight.seen(self._targets(hosts), self._connection, self._found.lock)

    def differs(self, facts: HostFacts) -> bool:
        """Return whether a host has other packages than it was found with."""
        decision = self.decisions[facts.host]
        now = FactsView(facts, ("packages.installed",), HostFacts.get).readable("packages.installed", {})
        held = decision.held.packages
        names = {*held, *decision.versions.packages}
        return any(now.get(name, {}).get("version") != held.get(name) for name in names)

    # packages

    def packages(self, hosts: Sequence[str]) -> Results:
        """Install repositories, pins and parts, while no scheduler sends work."""
        guard = {"drained": not self.request.assume_drained}
        variables = {host: {**self.decisions[host].variables(), "nodetune_guard": guard} for host in hosts}
        return provision_results.played(self.operations.play("provision", hosts, variables, PLAY_SECONDS))

    def drain(self, hosts: Sequence[str]) -> Results:
        """Drain hosts: no scheduler, no jobs, and nothing else that computes."""
        ours, waits = self.operations.drained(hosts)
        self.ours += [host for host in ours if host not in self.ours]
        found = {host: failed(why) for host, why in waits.items()}
        free = [host for host in hosts if host not in found]
        for host, facts in self.seen(free).items() if free and not self.stopped else ():
            users = provision_results.users(facts)
            found[host] = users or StageResult(DONE if host in ours else NOTHING)
        return found

    # reboot

    def reboot(self, hosts: Sequence[str]) -> Results:
        """Reboot only if the running driver is not the installed one."""
        found: Results = {}
        why: dict[str, str] = {}
        for host, facts in self.seen(hosts).items():
            asked = self._asked_for_reboot(host, facts)
            if isinstance(asked, StageResult):
                found[host] = asked
            else:
                why[host] = asked
        lost = self.operations.rebooted(list(why), {"drained": not self.request.assume_drained})
        back = [host for host in why if host not in lost]
        found |= {host: failed(message) for host, message in lost.items()}
        for host, facts in self.seen(back).items() if back else ():
            found[host] = self._up(host, facts, why[host])
        return found

    def _asked_for_reboot(self, host: str, facts: HostFacts | UnreachableError) -> StageResult | str:
        """Return why this host has to reboot, or its result if it need not."""
        if isinstance(facts, UnreachableError):
            return provision_results.unreached(facts)
        try:
            why = running_driver.takes_reboot(facts, self.decisions[host].driver)
        except HostRefusedError as refused:
            return provision_results.refused(refused)
        return (provision_results.users(facts) or why) if why else StageResult(NOTHING)

    def _up(self, host: str, facts: HostFacts | UnreachableError, why: str) -> StageResult:
        if isinstance(facts, UnreachableError):
            return provision_results.unreached(facts)
        try:
            wrong = running_driver.not_up(facts, self.decisions[host].driver)
            loaded = running_driver.version(facts)
        except HostRefusedError as refused:
            return provision_results.refused(refused)
        if not wrong:
            return StageResult(DONE, why)
        # it may have booted another kernel: only the packages stage brings that kernel's headers, and with them the modules
        return failed(f"{wrong}: check dmesg and dkms status there", restart_at="" if loaded else "packages")

    # tune, audit

    def tune(self, hosts: Sequence[str]) -> Results:
        """Apply the profile, with its reboot."""
        results = list(audit_hosts.audit_keeping_facts(self._targets(hosts), self._selection, self._connection))
        self._run.save("before", audit_document.audit(replace(each, facts=None) for each in results))
        prepared = apply.planned(self.request.tuning, self._found.targets, auditor.by_name(results))
        report = apply.changed(prepared, self._run, self._phase.heard)
        self.operations.stopped = self.operations.stopped or report.stopped
        return {each.host: provision_results.tuned(each, report.done) for each in prepared.results}

    def audit(self, hosts: Sequence[str], *, gating_only: bool = False) -> Results:
        """Audit again: nothing fixable may be left (unless `gating_only`), and nothing that keeps jobs away."""
        results = list(audit_hosts.audit_hosts(self._targets(hosts), self._selection, self._connection))
        self._run.save("audit", audit_document.audit(auditor.by_name(results)))
        return {each.host: provision_results.audited(each, gating_only=gating_only) for each in results}

    # verify, baseline

    def verify(self, hosts: Sequence[str]) -> Results:
        """Ask parts that answer, run the quick suite, and compare it with the site's baseline, peers and shipped figures."""
        found: Results = {}
        for part, play in ANSWERS.items():
            found |= self._silent(part, play, [host for host in hosts if host not in found])
        left = [host for host in hosts if host not in found]
        verifications = self._proved(left)
        return found | {
            host: failed(self.stopped) if self.stopped else provision_results.proved(verifications[host])
            for host in left
        }

    def _silent(self, part: str, play: str, hosts: Sequence[str]) -> Results:
        """Return the hosts on which the play that asks a part fails."""
        mine = [host for host in hosts if part in self.decisions[host].wanted.parts]
        asked = provision_results.played(self.operations.play(play, mine)) if mine else {}
        return {host: each for host, each in asked.items() if not each.ok}

    def _proved(self, hosts: Sequence[str]) -> dict[str, HostVerification]:
        """Measure the hosts, once in a run."""
        new = [host for host in hosts if host not in self._verifications]
        if new:
            wanted = self.measured()
            verify_run = VerifyRun(wanted, self._connection, remote.measure, measuring(self._phase))
            path = self._site.baseline
            known = baselines.read(path) if path and path.exists() else None
            self._verifications |= {
                each.host: each for each in verify_run.prove(self._targets(new), known, even_if_busy=False)
            }
            verifications = [self._verifications[host] for host in sorted(self._verifications)]
            if any(each.state == "interrupted" for each in verifications):
                self.operations.stopped = self.stopped or STOPPED
            self.keep("verify", verifications, wanted)
        return self._verifications

    def keep(self, name: str, verifications: Sequence[HostVerification], wanted: SuiteRequest) -> None:
        """Save figures in the record."""
        self._run.save(name, verify_document.document(verifications, wanted, shlex.join(self._connection.words)))

    def before_after(self, suite: SuiteRequest, keep: Keep) -> BeforeAfter:
        """Return what measures hosts before and after a change."""
        return BeforeAfter(suite, self._found.targets, self._connection, remote.measure, measuring(self._phase), keep)

    def measured(self, runs_of: int = 1) -> SuiteRequest:
        """Return what to measure, as verify takes it."""
        path = self._site.nccl
        library = path if ".so" in path or not path else f"{path}/lib/libnccl.so.2"
        return SuiteRequest("quick", nccl=library, repeat=runs_of)

    def baseline(self, hosts: Sequence[str]) -> Results:
        """Save the figures as the site's baseline, once: later hosts are compared with them.

        Only what was compared with something: a person decides that a figure is good which nothing proves.
        """
        path = self._site.baseline
        if path is None:
            return dict.fromkeys(hosts, StageResult(LEFT_OUT, "the site file has no baseline"))
        if path.exists():
            return dict.fromkeys(hosts, StageResult(NOTHING, f"compared with {path.name}"))
        proved = [each for host, each in self._proved(hosts).items() if host in hosts]
        verifications = [each for each in proved if each.machine != UNKNOWN]
        document = verify_document.kept(verifications, unproven=False)
        if not any(each.verdicts for each in verifications):
            return dict.fromkeys(hosts, failed(f"{path} is not written: no figures to save", INCOMPLETE))
        if not document["figures"] and any(each.disturbed for each in verifications):
            name, why = next(each.disturbed[0] for each in verifications if each.disturbed)
            return dict.fromkeys(hosts, failed(f"{path} is not written: during {name} {why}", INCOMPLETE))
        if not document["figures"]:
            good = f"if the hardware is good: nodetune verify --save-baseline {path}"
            why = f"{path} is not written, because no figure has a reference; {good}"
            return dict.fromkeys(hosts, StageResult(LEFT_OUT, why))
        path.parent.mkdir(parents=True, exist_ok=True)
        file_io.write(path, json_document.text(document))
        left = "; figures without a reference are not in it" if provision_results.unproven(verifications) else ""
        return dict.fromkeys(hosts, StageResult(DONE, f"written to {path}{left}"))

    # guard, join

    def guard(self, hosts: Sequence[str]) -> Results:
        """Install the guard as `nodetune guard install` does. slurm.conf stays as it is: it belongs to the cluster."""
        mode = self._site.guard
        if not mode:
            return dict.fromkeys(hosts, StageResult(LEFT_OUT, "the site file requests no guard"))
        request = InstallRequest(self._connection, self._selection, PolicySettings(mode=mode))
        wide = nodes.Guarding(self._selection.profiles, self._selection.site)
        targets = self._targets(hosts)
        results = auditor.by_name(audit_hosts.audit_keeping_facts(targets, wide, self._connection))
        prepared = install.with_policies(request, targets, results)
        playbooks = GuardPlaybooks(targets, self._connection, self._run, self._phase.heard)
        install.bring(request, prepared, playbooks)
        lost = {each.host: failed(f"{each.state}: {each.message}", INCOMPLETE) for each in prepared.lost}
        return lost | {host: provision_results.installed(outcome, mode) for host, outcome in playbooks.outcomes.items()}

    def give_back(self, hosts: Sequence[str]) -> None:
        """Resume drained hosts of this run that completed; record why the others stay drained."""
        well = [host for host in self.ours if host in hosts]
        self.operations.left_drained |= {host: "it failed here" for host in self.ours if host not in hosts}
        self.operations.give_back(well)
        self.ours = []

    def join(self, hosts: Sequence[str]) -> Results:
        """Put hosts into service. Hosts that were drained by others stay drained: there was a reason."""
        if self._site.join == "slurm":
            found = self._resumed(hosts)
            self.ours = [host for host in self.ours if host not in found]
            return found
        if self._site.join == "kubernetes":
            return provision_results.played(self.operations.play("uncordon", hosts))
        return dict.fromkeys(hosts, StageResult(LEFT_OUT, "the site file requests no join"))

    def _resumed(self, hosts: Sequence[str]) -> Results:
        """Resume hosts that this run drained, or an earlier run that did not get so far."""
        found: Results = {}
        for run in [self._run.id, *_earlier(self._run)]:
            left = [host for host in hosts if host not in found]
            variables = {host: {"nodetune_run": run} for host in left}
            came = provision_results.played(self.operations.play("resume", left, variables))
            found |= {host: each for host, each in came.items() if each.state != NOTHING}
        told = "Slurm has no drain by nodetune there; the user who drained the node must resume it"
        return {host: found.get(host, StageResult(NOTHING, told)) for host in hosts}


def _earlier(own: Run) -> list[str]:
    """Return the earlier runs of this command, newest first."""
    others = (run for run in record.listing(own.folder.parent) if run.id != own.id)
    return [run.id for run in others if _provisioned(run)][:MAX_PAST_RUNS]


def _provisioned(run: Run) -> bool:
    try:
        return run.about.get("command") == "provision"
    except RunError:
        return False
