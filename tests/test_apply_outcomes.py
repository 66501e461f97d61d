"""What an apply does with its hosts: waves, what each step came to, when it stops, and which runs it may take over."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune import apply, factfile, rollout, runs, workflow
from nodetune.apply import FAILING, FIXED, NOT_APPLIED, PENDING, SKIPPED, BadBatch, Carried, Done
from nodetune.choice import Planning
from nodetune.field import How
from nodetune.model import DISRUPTIONS, Finding, Fix, HostResult, Step
from nodetune.playbook import Event, Outcome
from nodetune.runs import past

HOSTS = [f"gpu{number}" for number in range(1, 11)]


def step(host="gpu1", disruption="none", kind="sysctl", target="vm.swappiness", check="swappiness-high"):
    return Step(host, check, Fix(kind, target, 10, disruption), "60", "10")


def audit(status, state="ok", message="", **more):
    found = Finding("swappiness-high", status, "low", observed="60", wanted="at most 30", **more)
    return HostResult("gpu1", state, message, findings=(found,))


CLEAN = Carried(touched=True)


# Waves


def test_a_canary_goes_first_and_all_others_follow_at_once():
    assert apply.waves(HOSTS, 1, "") == [["gpu1"], HOSTS[1:]]


def test_batches_are_hosts_or_a_share_of_all_hosts_rounded_up():
    assert [len(wave) for wave in apply.waves(HOSTS, 1, "4")] == [1, 4, 4, 1]
    assert [len(wave) for wave in apply.waves(HOSTS, 2, "25%")] == [2, 3, 3, 2]
    assert [len(wave) for wave in apply.waves(HOSTS, 0, "1%")] == [1] * 10
    assert [len(wave) for wave in apply.waves(HOSTS, 0, "100%")] == [10]


def test_every_host_is_in_one_wave_and_in_its_order():
    for canary in range(12):
        for batch in ("", "1", "3", "10", "99", "7%", "50%"):
            waves = apply.waves(HOSTS, canary, batch)
            assert [host for wave in waves for host in wave] == HOSTS
            assert all(waves)


def test_as_many_hosts_as_canaries_are_no_canaries():
    assert apply.waves(HOSTS[:2], 2, "1") == [["gpu1"], ["gpu2"]]
    assert apply.waves([], 1, "") == []


@pytest.mark.parametrize("batch", ["0", "0%", "-1", "101%", "ten", "10 %%", "1.5", "1e3", "9999999", "%"])
def test_a_batch_that_means_nothing_is_told_with_what_would(batch):
    with pytest.raises(BadBatch, match="give a number of hosts such as 10, or a share such as 25%") as told:
        apply.waves(HOSTS, 1, batch)
    assert repr(batch) in str(told.value)


# What a step came to: the audit decides


@pytest.mark.parametrize("status", ["pass", "skip", "waived"])
def test_what_the_audit_no_longer_finds_is_fixed_and_a_problem_on_the_way_is_kept(status):
    assert apply.outcome(step(), audit(status), CLEAN) == Done(step(), FIXED)
    trouble = Carried(problems={"swappiness-high": "the file: disk full"}, touched=True)
    assert apply.outcome(step(), audit(status), trouble) == Done(step(), FIXED, "the file: disk full")


def test_what_ansible_calls_done_and_the_audit_still_finds_is_still_failing():
    done = apply.outcome(step(), audit("fail"), CLEAN)
    assert (done.outcome, done.reason) == (FAILING, "60, wanted at most 30")
    lost = apply.outcome(step(), audit("fail", reason="the next boot sets 60"), CLEAN)
    assert lost.reason == "60, wanted at most 30 (the next boot sets 60)"


def test_what_the_audit_cannot_tell_is_still_failing():
    assert apply.outcome(step(), audit("unknown", reason="no answer"), CLEAN).reason == "unknown: no answer"
    other = replace(audit("pass"), findings=())
    assert apply.outcome(step(), other, CLEAN) == Done(step(), FAILING, "the audit afterwards did not judge it")


def test_a_problem_of_its_own_or_of_the_whole_host_means_not_applied():
    own = Carried(problems={"swappiness-high": "vm.swappiness: the kernel refuses"}, touched=True)
    assert apply.outcome(step(), audit("fail"), own) == Done(step(), NOT_APPLIED, "vm.swappiness: the kernel refuses")
    host = Carried("the connection was lost", touched=True)
    assert apply.outcome(step(), audit("fail"), host) == Done(step(), NOT_APPLIED, "the connection was lost")


def test_what_waits_is_skipped_and_what_is_free_is_not():
    waits = Carried(waits="GPU0 is in use by process 7")
    disruptive = step(disruption="service restart")
    assert apply.outcome(disruptive, audit("fail"), waits) == Done(disruptive, SKIPPED, "GPU0 is in use by process 7")
    assert apply.outcome(step(), audit("fail"), waits).outcome == FAILING


def test_what_only_a_boot_puts_in_force_is_pending():
    for pending in (step(disruption="reboot", kind="kernel_arg"), step(kind="gpu", target="ecc_mode")):
        assert apply.outcome(pending, audit("fail"), CLEAN).outcome == PENDING
        assert apply.outcome(pending, audit("fail"), Carried("stopped", touched=True)).outcome == NOT_APPLIED


def test_a_host_that_cannot_be_audited_has_nothing_applied_with_the_reason():
    lost = HostResult("gpu1", "unreachable", "timed out")
    assert apply.outcome(step(), lost, CLEAN) == Done(step(), NOT_APPLIED, "not known: unreachable: timed out")
    assert apply.outcome(step(), lost, Carried("reboot: gone")).reason == "reboot: gone"
    assert apply.outcome(step(), None, Carried()) == Done(step(), NOT_APPLIED, "nothing was done there")


# The whole


def test_the_end_state_is_reached_when_all_that_the_limit_allowed_is_fixed():
    beyond = Done(step(disruption="reboot"), SKIPPED, "it costs: reboot")
    fixed = Done(step(), FIXED)
    assert apply.reached([], "none")
    assert apply.reached([fixed, beyond], "new sessions")
    assert not apply.reached([fixed, beyond], "reboot")
    assert not any(
        apply.reached([Done(step(), outcome)], "none") for outcome in (PENDING, FAILING, NOT_APPLIED, SKIPPED)
    )


def test_the_disruption_limit_includes_itself_and_all_below():
    for limit in DISRUPTIONS:
        allowed = [each for each in DISRUPTIONS if apply.within(each, limit)]
        assert allowed == list(DISRUPTIONS[: DISRUPTIONS.index(limit) + 1])


def test_only_what_was_tried_and_did_not_come_out_counts_as_a_failure():
    done = [Done(step(name), outcome) for name, outcome in zip("abcde", apply.OUTCOMES, strict=True)]
    assert apply.failed_hosts(done) == {"c", "d"}


def test_a_fix_that_is_in_place_and_broke_something_is_no_success():
    broke = Done(step(), FIXED, "restart slurmd.service: it does not start: no such card")
    assert not apply.reached([broke], "none")
    assert apply.failed_hosts([broke]) == {"gpu1"}


class Waves(rollout.Rollout):
    """The order of waves and where it ends: what a wave does is tested on machines (tests/fleet)."""

    def __init__(self, run, failing, **how):
        super().__init__([], None, None, How(**how), run, lambda _event: None)
        self.failing, self.begun = failing, []

    def _wave(self, planned):
        self.begun.append([each.result.host for each in planned])
        return [Done(step, FAILING if step.host in self.failing else FIXED) for each in planned for step in each.todo]


def worked(tmp_path, failing, **how):
    planned = [rollout.Planned(HostResult(host, "ok"), (step(host),)) for host in HOSTS]
    rolling = Waves(runs.Run.create("apply", {}, HOSTS, None, tmp_path), failing, **how)
    return rolling.begun, {each.step.host: each for each in rolling.apply(planned)}


def test_a_canary_that_fails_ends_it_there(tmp_path):
    begun, done = worked(tmp_path, {"gpu1"})
    assert begun == [["gpu1"]]
    assert done["gpu2"] == Done(step("gpu2"), NOT_APPLIED, "not begun: 1 hosts had failed (--max-failures 0)")
    assert set(done) == set(HOSTS)


def test_as_many_failures_as_allowed_are_gone_past_and_one_more_is_not(tmp_path):
    begun, done = worked(tmp_path, {"gpu1", "gpu3", "gpu10"}, batch="2", max_failures=1)
    assert begun == [["gpu1"], ["gpu10", "gpu2"]]
    assert done["gpu2"].outcome == FIXED
    assert {done[host].outcome for host in ("gpu3", "gpu4", "gpu9")} == {NOT_APPLIED}


def test_without_failures_all_waves_are_gone_through(tmp_path):
    begun, done = worked(tmp_path, set(), batch="40%", canary=2)
    assert [len(wave) for wave in begun] == [2, 4, 4]
    assert {each.outcome for each in done.values()} == {FIXED}


# Runs that were interrupted


def test_a_lock_of_runs_of_the_past_may_be_taken_and_that_of_a_run_at_work_may_not(tmp_path):
    own, over, working = (runs.Run.create("apply", {}, ["gpu1"], None, tmp_path) for _ in range(3))
    killed = runs.Run.create("apply", {}, ["gpu1"], None, tmp_path)
    over.finish(0)
    about = json.loads((killed.folder / "run.json").read_text())
    about["controller"]["boot"] = "another"
    (killed.folder / "run.json").write_text(json.dumps(about))
    found = past.over(own)
    assert set(found["gpu1"].split()) == {over.id, killed.id}
    assert working.id not in found["gpu1"]


def test_what_interrupted_runs_did_is_gathered_by_host():
    dead = {"run": "r1", "did": ["vm.swappiness"]}
    told = Outcome("gpu1", results=(Event("gpu1", "Begin", result={"interrupted": [dead]}),))
    quiet = Outcome("gpu2", results=(Event("gpu2", "Begin", result={"interrupted": []}),))
    assert rollout.interrupted({"gpu1": told, "gpu2": quiet}) == {"gpu1": [dead]}


# Before anything is done


@pytest.mark.parametrize(("uid", "steps"), [(0, True), (1000, False)])
def test_without_root_nothing_is_tried_and_the_way_to_root_is_said(uid, steps):
    facts = factfile.load(Path(__file__).parent / "machines" / "hgx-h200-untuned.json")
    facts = replace(facts, about={**facts.about, "uid": uid})
    judged = workflow.Judge(Planning(), "2026-11-01").result(facts)
    planned = rollout.prepare(replace(judged, facts=facts), How())
    assert bool(planned.todo) == bool(planned.built.groups) == steps
    assert any("--become" in each.reason for each in planned.skipped) != steps
