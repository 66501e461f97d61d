"""What an apply does with its hosts: batches, what each step came to, when it stops, and which runs it may take over."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune.api.model import DISRUPTIONS, Finding, Fix, HostResult
from nodetune.audit import auditor
from nodetune.facts import document
from nodetune.remediation import outcomes as remediation_outcomes
from nodetune.remediation import rollout
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.batches import BatchError, batches
from nodetune.remediation.outcomes import FAILING, FIXED, NOT_APPLIED, PENDING, SKIPPED, StepOutcome
from nodetune.remediation.plan import HostPlan, PlanSelection
from nodetune.remediation.request import ApplyRequest
from nodetune.remediation.runs import earlier_runs
from nodetune.remediation.runs.record import Run

HOSTS = [f"gpu{number}" for number in range(1, 11)]


def finding(disruption="none", kind="sysctl", target="vm.swappiness", check="swappiness-high"):
    return Finding(check, "fail", "low", observed="60", fix=Fix(kind, target, 10, disruption))


def done(outcome, reason="", host="gpu1", **fix):
    return StepOutcome.of(host, finding(**fix), outcome, reason)


def judged(after, found=None, **ansible):
    """What a fix on gpu1 comes to."""
    return remediation_outcomes.outcome("gpu1", found or finding(), after, **ansible)


def audit(status, state="ok", message="", **more):
    found = Finding("swappiness-high", status, "low", observed="60", wanted="at most 30", **more)
    return HostResult("gpu1", state, message, findings=(found,))


# Waves


def test_a_canary_goes_first_and_all_others_follow_at_once():
    assert batches(HOSTS, 1, "") == [["gpu1"], HOSTS[1:]]


def test_batches_are_hosts_or_a_share_of_all_hosts_rounded_up():
    assert [len(batch) for batch in batches(HOSTS, 1, "4")] == [1, 4, 4, 1]
    assert [len(batch) for batch in batches(HOSTS, 2, "25%")] == [2, 3, 3, 2]
    assert [len(batch) for batch in batches(HOSTS, 0, "1%")] == [1] * 10
    assert [len(batch) for batch in batches(HOSTS, 0, "100%")] == [10]


def test_every_host_is_in_one_batch_and_in_its_order():
    for canary in range(12):
        for batch in ("", "1", "3", "10", "99", "7%", "50%"):
            parts = batches(HOSTS, canary, batch)
            assert [host for part in parts for host in part] == HOSTS
            assert all(parts)


def test_as_many_hosts_as_canaries_are_no_canaries():
    assert batches(HOSTS[:2], 2, "1") == [["gpu1"], ["gpu2"]]
    assert batches([], 1, "") == []


@pytest.mark.parametrize("batch", ["0", "0%", "-1", "101%", "ten", "10 %%", "1.5", "1e3", "9999999", "%"])
def test_a_batch_that_means_nothing_is_told_with_what_would(batch):
    with pytest.raises(BatchError, match="give a number of hosts such as 10, or a percentage such as 25%") as told:
        batches(HOSTS, 1, batch)
    assert repr(batch) in str(told.value)


# What a step came to: the audit decides


@pytest.mark.parametrize("status", ["pass", "skip", "waived"])
def test_what_the_audit_no_longer_finds_is_fixed(status):
    assert judged(audit(status)) == done(FIXED)
    assert judged(audit(status), problem="the file: disk full") == done(FIXED, "the file: disk full")


def test_what_no_file_keeps_is_not_fixed():
    told = judged(audit("pass"), problem="/etc/sysctl.d/zz-nodetune.conf cannot be written", kept=False)
    assert told == done(NOT_APPLIED, "/etc/sysctl.d/zz-nodetune.conf cannot be written")
    assert judged(audit("fail"), kept=False).outcome == FAILING


def test_an_outcome_says_what_was_there_and_what_was_set():
    found = judged(audit("pass"), finding("reboot"))
    assert (found.host, found.check, found.disruption) == ("gpu1", "swappiness-high", "reboot")
    assert (found.before, found.after) == ("60", "10")


def test_a_fix_that_the_audit_still_finds_is_still_failing():
    still = judged(audit("fail"))
    assert (still.outcome, still.reason) == (FAILING, "60, wanted at most 30")
    lost = judged(audit("fail", reason="the next boot sets 60"))
    assert lost.reason == "60, wanted at most 30 (the next boot sets 60)"


def test_what_the_audit_cannot_tell_is_still_failing():
    assert judged(audit("unknown", reason="no answer")).reason == "unknown: no answer"
    other = replace(audit("pass"), findings=())
    assert judged(other) == done(FAILING, "the second audit did not judge it")


def test_a_problem_of_a_fix_or_its_host_means_not_applied():
    own = "vm.swappiness: the kernel rejected"
    assert judged(audit("fail"), problem=own, message="a task failed") == done(NOT_APPLIED, own)
    lost = "the connection was lost"
    assert judged(audit("fail"), message=lost) == done(NOT_APPLIED, lost)


def test_what_waits_is_skipped_and_what_is_free_is_not():
    waits = "GPU0 is in use by process 7"
    disruptive = finding("service restart")
    assert judged(audit("fail"), disruptive, waits=waits) == done(SKIPPED, waits, disruption="service restart")
    assert judged(audit("fail"), waits=waits).outcome == FAILING


def test_what_only_a_boot_puts_in_force_is_pending():
    for pending in (finding("reboot", kind="kernel_arg"), finding(kind="gpu", target="ecc_mode")):
        assert judged(audit("fail"), pending).outcome == PENDING
        assert judged(audit("fail"), pending, message="stopped").outcome == NOT_APPLIED


def test_an_argument_that_the_next_boot_lacks_is_not_pending():
    lacks = judged(audit("fail", not_installed="the boot loader starts the kernel without iommu=pt"), finding("reboot"))
    assert lacks.outcome == FAILING
    assert lacks.reason == "60, wanted at most 30; the boot loader starts the kernel without iommu=pt"


def test_a_host_that_cannot_be_audited_is_not_applied():
    lost = HostResult("gpu1", "unreachable", "timed out")
    assert judged(lost) == done(NOT_APPLIED, "unknown: unreachable: timed out")
    assert judged(lost, message="reboot: gone").reason == "reboot: gone"
    assert judged(None) == done(NOT_APPLIED, "nothing was done there")


# The whole


def test_the_end_state_needs_all_allowed_fixes():
    beyond = done(SKIPPED, "disruption: reboot", disruption="reboot")
    assert remediation_outcomes.reached([], "none")
    assert remediation_outcomes.reached([done(FIXED), beyond], "new sessions")
    assert not remediation_outcomes.reached([done(FIXED), beyond], "reboot")
    assert not any(
        remediation_outcomes.reached([done(outcome)], "none") for outcome in (PENDING, FAILING, NOT_APPLIED, SKIPPED)
    )


def test_the_disruption_limit_includes_itself_and_all_below():
    allowed = [[each for each in DISRUPTIONS if remediation_outcomes.within(each, limit)] for limit in DISRUPTIONS]
    assert allowed == [list(DISRUPTIONS[: number + 1]) for number in range(len(DISRUPTIONS))]
    assert len(allowed) > 4


def test_only_what_was_tried_and_failed_counts_as_failure():
    all_of_them = [
        done(outcome, host=host) for host, outcome in zip("abcde", remediation_outcomes.OUTCOMES, strict=True)
    ]
    assert remediation_outcomes.failed_hosts(all_of_them) == {"c", "d"}


def test_a_fix_in_place_that_broke_something_is_no_success():
    broke = done(FIXED, "restart slurmd.service: it does not start: no such card")
    assert not remediation_outcomes.reached([broke], "none")
    assert remediation_outcomes.failed_hosts([broke]) == {"gpu1"}


class Waves(rollout.Rollout):
    """The order of batches and where it ends: what a batch does is tested on machines (tests/machines)."""

    def __init__(self, run, failing, **how):
        super().__init__([], ApplyRequest(**how), run, lambda _event: None)
        self.failing, self.begun = failing, []

    def _batch(self, plans):
        self.begun.append([plan.host for plan in plans])
        return [done(FAILING if plan.host in self.failing else FIXED, host=plan.host) for plan in plans]


def worked(tmp_path, failing, **how):
    plans = [HostPlan(HostResult(host, "ok"), (finding(),)) for host in HOSTS]
    rolling = Waves(Run.create("apply", {}, HOSTS, None, tmp_path), failing, **how)
    return rolling.begun, {each.host: each for each in rolling.apply(plans)}


def test_a_canary_that_fails_ends_it_there(tmp_path):
    begun, outcomes = worked(tmp_path, {"gpu1"})
    assert begun == [["gpu1"]]
    assert outcomes["gpu2"] == done(NOT_APPLIED, "not started: 1 host failed (--max-failures 0)", "gpu2")
    assert set(outcomes) == set(HOSTS)


def test_a_run_stops_after_one_failure_too_many(tmp_path):
    begun, outcomes = worked(tmp_path, {"gpu1", "gpu3", "gpu10"}, batch="2", max_failures=1)
    assert begun == [["gpu1"], ["gpu10", "gpu2"]]
    assert outcomes["gpu2"].outcome == FIXED
    assert {outcomes[host].outcome for host in ("gpu3", "gpu4", "gpu9")} == {NOT_APPLIED}


def test_without_failures_all_batches_are_done(tmp_path):
    begun, outcomes = worked(tmp_path, set(), batch="40%", canary=2)
    assert [len(batch) for batch in begun] == [2, 4, 4]
    assert {each.outcome for each in outcomes.values()} == {FIXED}


# Runs that were interrupted


def test_locks_of_past_runs_may_be_taken_those_of_live_runs_not(tmp_path):
    own, over, working = (Run.create("apply", {}, ["gpu1"], None, tmp_path) for _ in range(3))
    killed = Run.create("apply", {}, ["gpu1"], None, tmp_path)
    over.finish(0)
    about = json.loads((killed.folder / "run.json").read_text())
    about["controller"]["boot"] = "another"
    (killed.folder / "run.json").write_text(json.dumps(about))
    found = earlier_runs.over(own)
    assert set(found["gpu1"].split()) == {over.id, killed.id}
    assert working.id not in found["gpu1"]


def test_what_interrupted_runs_did_is_gathered_by_host():
    dead = {"run": "r1", "did": ["vm.swappiness"]}
    told = Outcome("gpu1", results=(Event("gpu1", "Begin", result={"interrupted": [dead]}),))
    quiet = Outcome("gpu2", results=(Event("gpu2", "Begin", result={"interrupted": []}),))
    assert rollout.interrupted({"gpu1": told, "gpu2": quiet}) == {"gpu1": [dead]}


# Before anything is done


@pytest.mark.parametrize(("uid", "steps"), [(0, True), (1000, False)])
def test_nothing_is_tried_without_root_and_the_way_is_named(uid, steps):
    facts = document.load(Path(__file__).parents[2] / "data" / "synthetic" / "hgx-h200-untuned.json")
    facts = replace(facts, about={**facts.about, "uid": uid})
    audited = auditor.Auditor(PlanSelection(), "2026-11-01").result(facts)
    plan = rollout.prepare(replace(audited, facts=facts), ApplyRequest())
    assert bool(plan.findings) == bool(plan.changes) == steps
    assert any("--become" in each.reason for each in rollout.left_out([plan])) != steps
