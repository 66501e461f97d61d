"""What is done at each stage, by the parts that nodetune's other commands are made of. Hosts go through a stage together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nodetune import rollout, runs, whole, workflow
from nodetune.field import Field, Tell
from nodetune.model import HostFacts
from nodetune.outcome import INCOMPLETE
from nodetune.proof import Measure, Proof, Prover
from nodetune.proof import Tell as Hear
from nodetune.provision import driver, judge, look
from nodetune.provision.look import Given, Looked
from nodetune.provision.record import DONE, LEFT_OUT, NOTHING, STOPPED, Came, Results, failed
from nodetune.provision.seen import Refused
from nodetune.report import apply_data, data, verify_data
from nodetune.runs import Run
from nodetune.slurm import nodes
from nodetune.slurm.nodes import Node
from nodetune.slurm.plays import Plays
from nodetune.transport import Target, Unreachable
from nodetune.verdict import baseline as baselines
from nodetune.verdict.machine import UNKNOWN
from nodetune.verdict.suites import Wanted
from nodetune.view import View

PLAY_SECONDS = 7200.0
"""All hosts at once; DKMS builds the modules on each, which takes minutes on a slow one."""

MOST_PAST_RUNS = 5


@dataclass(frozen=True)
class Tools:
    """What the work is done with: who measures, and who hears of it."""

    measure: Measure
    tell: Tell
    hear: Hear


class Work:
    """The hosts of one run. Every method takes the hosts that are still with us, and says what each came to."""

    def __init__(self, given: Given, looked: Looked, run: Run, tools: Tools) -> None:
        self.given, self._looked, self._run, self._tools = given, looked, run, tools
        self.field = Field(given.targets, given.reach, given.how, run, tools.tell)
        self.decisions = dict(looked.decisions)
        self._proofs: dict[str, Proof] = {}
        self.ours: list[str] = []
        """Hosts that this run drained."""

    @property
    def stopped(self) -> str:
        return self.field.stopped

    def _targets(self, hosts: Iterable[str]) -> list[Target]:
        return [self.field.targets[host] for host in hosts]

    def look(self, _hosts: Sequence[str]) -> Results:
        """What was found before anything was agreed to, written down; what hosts have now before anything is touched."""
        for facts in self._looked.facts.values():
            self._run.save_facts(facts)
        self._run.save("held", {host: look.held(each) for host, each in self.decisions.items()})
        return dict(self._looked.came)

    def seen(self, hosts: Sequence[str]) -> dict[str, HostFacts | Unreachable]:
        """The facts of hosts as they are now."""
        return look.seen(self._targets(hosts), self.given)

    def running(self, host: str) -> str:
        """The driver that ran there when it was looked at; empty where none did."""
        return driver.running_driver(self._looked.facts[host])

    def differs(self, facts: HostFacts) -> bool:
        """Whether a host has other packages than it was found with."""
        decision = self.decisions[facts.host]
        now = View(facts, ("packages.installed",), HostFacts.get).readable("packages.installed", {})
        held = decision.held.packages
        names = {*held, *decision.versions.packages}
        return any(now.get(name, {}).get("version") != held.get(name) for name in names)

    # packages

    def packages(self, hosts: Sequence[str]) -> Results:
        """Repositories, pins and parts, where no scheduler sends work meanwhile."""
        guard = {"drained": not self.given.how.assume_drained}
        variables = {host: {**self.decisions[host].variables(), "nodetune_guard": guard} for host in hosts}
        return judge.played(self.field.play("provision", hosts, variables, PLAY_SECONDS))

    def drain(self, hosts: Sequence[str]) -> Results:
        """Out of the scheduler's service, free of jobs, and of everything else that computes."""
        ours, waits = self.field.drained(hosts)
        self.ours += [host for host in ours if host not in self.ours]
        found = {host: failed(why) for host, why in waits.items()}
        free = [host for host in hosts if host not in found]
        for host, facts in self.seen(free).items() if free and not self.stopped else ():
            users = judge.users(facts)
            found[host] = users or Came(DONE if host in ours else NOTHING)
        return found

    # reboot

    def reboot(self, hosts: Sequence[str]) -> Results:
        """Only where the running driver is not the installed one."""
        found: Results = {}
        why: dict[str, str] = {}
        for host, facts in self.seen(hosts).items():
            asked = self._asked_for_reboot(host, facts)
            if isinstance(asked, Came):
                found[host] = asked
            else:
                why[host] = asked
        lost = self.field.rebooted(list(why), {"drained": not self.given.how.assume_drained})
        back = [host for host in why if host not in lost]
        found |= {host: failed(message) for host, message in lost.items()}
        for host, facts in self.seen(back).items() if back else ():
            found[host] = self._up(host, facts, why[host])
        return found

    def _asked_for_reboot(self, host: str, facts: HostFacts | Unreachable) -> Came | str:
        """Why this host has to boot; or what it came to without."""
        if isinstance(facts, Unreachable):
            return judge.unreached(facts)
        try:
            why = driver.takes_reboot(facts, self.decisions[host].driver)
        except Refused as refused:
            return judge.refused(refused)
        return (judge.users(facts) or why) if why else Came(NOTHING)

    def _up(self, host: str, facts: HostFacts | Unreachable, why: str) -> Came:
        if isinstance(facts, Unreachable):
            return judge.unreached(facts)
        try:
            wrong = driver.not_up(facts, self.decisions[host].driver)
            loaded = driver.running_driver(facts)
        except Refused as refused:
            return judge.refused(refused)
        if not wrong:
            return Came(DONE, why)
        # it may have booted another kernel: only the packages stage brings that kernel's headers, and with them the modules
        return failed(f"{wrong}: look at dmesg and dkms status there", mends="" if loaded else "packages")

    # tune, audit

    def tune(self, hosts: Sequence[str]) -> Results:
        """The apply of the profile, with its reboot."""
        given = self.given
        results = list(workflow.audit_keeping_facts(self._targets(hosts), given.choice, given.reach))
        planned = [rollout.prepare(each, given.how) for each in workflow.by_name(results)]
        self._run.save("before", data.audit(replace(each, facts=None) for each in results))
        rolling = rollout.Rollout(given.targets, given.choice, given.reach, given.how, self._run, self._tools.tell)
        done = rolling.apply(planned)
        self.field.stopped = self.field.stopped or rolling.stopped
        self._run.save("after", data.audit(rolling.after()))
        self._run.save("outcomes", apply_data.outcomes(done))
        return {each.result.host: judge.tuned(each.result, done) for each in planned}

    def audit(self, hosts: Sequence[str], *, gating_only: bool = False) -> Results:
        """What is left: nothing that nodetune could fix (unless only what gates counts), nothing that would keep jobs away."""
        results = list(workflow.audit_hosts(self._targets(hosts), self.given.choice, self.given.reach))
        self._run.save("audit", data.audit(workflow.by_name(results)))
        return {each.host: judge.audited(each, gating_only=gating_only) for each in results}

    # verify, baseline

    def verify(self, hosts: Sequence[str]) -> Results:
        """The quick suite, held against the site's baseline, siblings and shipped figures."""
        proofs = self._proved(hosts)
        return {host: failed(self.stopped) if self.stopped else judge.proved(proofs[host]) for host in hosts}

    def _proved(self, hosts: Sequence[str]) -> dict[str, Proof]:
        """The hosts' proofs; measured once in a run."""
        new = [host for host in hosts if host not in self._proofs]
        if new:
            wanted = self.measured()
            prover = Prover(wanted, self.given.reach, self._tools.measure, self._tools.hear)
            path = self.given.site.baseline
            known = baselines.read(path) if path and path.exists() else None
            self._proofs |= {each.host: each for each in prover.prove(self._targets(new), known, even_if_busy=False)}
            proofs = [self._proofs[host] for host in sorted(self._proofs)]
            if any(each.state == "interrupted" for each in proofs):
                self.field.stopped = self.stopped or STOPPED
            self._run.save("verify", verify_data.document(proofs, wanted, self.given.asked))
        return self._proofs

    def measured(self, runs_of: int = 1) -> Wanted:
        """What is measured, as verify takes it."""
        path = self.given.site.nccl
        library = path if ".so" in path or not path else f"{path}/lib/libnccl.so.2"
        return Wanted("quick", nccl=library, runs=runs_of)

    def baseline(self, hosts: Sequence[str]) -> Results:
        """Keep the figures as the site's own, once: later hosts are held against them."""
        path = self.given.site.baseline
        if path is None:
            return dict.fromkeys(hosts, Came(LEFT_OUT, "the site file names no baseline"))
        if path.exists():
            return dict.fromkeys(hosts, Came(NOTHING, f"held against {path.name}"))
        proofs = [each for host, each in self._proved(hosts).items() if host in hosts and each.machine != UNKNOWN]
        document = verify_data.kept(proofs)
        if not document["figures"]:
            return dict.fromkeys(hosts, failed(f"{path} is not written: there is no figure to keep", INCOMPLETE))
        path.parent.mkdir(parents=True, exist_ok=True)
        whole.write(path, data.text(document))
        return dict.fromkeys(hosts, Came(DONE, f"written to {path}"))

    # guard, join

    def guard(self, hosts: Sequence[str]) -> Results:
        """As `nodetune slurm install` does it. slurm.conf stays as it is: that is the cluster's, not this host's."""
        mode, given = self.given.site.guard, self.given
        if not mode:
            return dict.fromkeys(hosts, Came(LEFT_OUT, "the site file wants no guard"))
        wide = nodes.Guarding(given.choice.profiles, given.choice.site)
        results = workflow.by_name(workflow.audit_keeping_facts(self._targets(hosts), wide, given.reach))
        there = [Node(each) for each in results if each.facts]
        plays = Plays(self._targets(hosts), given.reach, self._run, self._tools.tell)
        before = plays.ask([node for node in there if node.policy])
        made = nodes.changes(there, nodes.policies(there, wide, {"mode": mode}), nodes.How(), before)
        tuned = {host: self._run.changes(host) or [] for host in made}
        plays.install(made)
        for host, groups in made.items():  # a rollback of this run takes back both
            self._run.save_changes(host, [*tuned[host], *groups])
        lost = {each.host: failed(f"{each.state}: {each.message}", INCOMPLETE) for each in results if not each.facts}
        return lost | {host: judge.installed(outcome, mode) for host, outcome in plays.outcomes.items()}

    def give_back(self, hosts: Sequence[str]) -> None:
        """Resume those of the hosts that this run drained and that are well; the others stay drained, and it is told why."""
        well = [host for host in self.ours if host in hosts]
        self.field.left_drained |= {host: "it failed here" for host in self.ours if host not in hosts}
        self.field.give_back(well)
        self.ours = []

    def join(self, hosts: Sequence[str]) -> Results:
        """Into service. What somebody else drained stays so, whoever that was had a reason."""
        if self.given.site.join == "slurm":
            found = self._resumed(hosts)
            self.ours = [host for host in self.ours if host not in found]
            return found
        if self.given.site.join == "kubernetes":
            return judge.played(self.field.play("uncordon", hosts))
        return dict.fromkeys(hosts, Came(LEFT_OUT, "the site file wants no join"))

    def _resumed(self, hosts: Sequence[str]) -> Results:
        """Lift the drain of this run, or of an earlier one that did not get so far."""
        found: Results = {}
        for run in [self._run.id, *_earlier(self._run)]:
            left = [host for host in hosts if host not in found]
            variables = {host: {"nodetune_run": run} for host in left}
            came = judge.played(self.field.play("resume", left, variables))
            found |= {host: each for host, each in came.items() if each.state != NOTHING}
        told = "Slurm has no drain of nodetune's there; what somebody else drained is theirs to resume"
        return {host: found.get(host, Came(NOTHING, told)) for host in hosts}


def _earlier(own: Run) -> list[str]:
    """Runs of this command before this one, newest first."""
    return [run.id for run in runs.listing(own.folder.parent) if run.id != own.id and _provisioned(run)][
        :MOST_PAST_RUNS
    ]


def _provisioned(run: Run) -> bool:
    try:
        return run.about.get("command") == "provision"
    except runs.BadRun:
        return False
