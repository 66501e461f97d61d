"""`nodetune apply --verify`: who is measured around the changes, what they brought, and a real apply in a room of its own."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from nodetune.api.model import Absent, Finding, Fix, HostFacts, HostResult
from nodetune.audit import hosts as audit_hosts
from nodetune.cli.commands import _apply
from nodetune.cli.main import group
from nodetune.foundation import json_document
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK, TOO_SLOW
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import UnreachableError
from nodetune.remediation import document as apply
from nodetune.remediation import rollout
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.apply import Prepared, changed
from nodetune.remediation.host_changes import PlannedChange
from nodetune.remediation.outcomes import FIXED, NOT_APPLIED, PENDING, StepOutcome
from nodetune.remediation.plan import HostPlan, PlanSelection
from nodetune.remediation.request import ApplyRequest
from nodetune.remediation.runs import record
from nodetune.remediation.runs.record import Run
from nodetune.report.text import before_after as text_before_after
from nodetune.verify import before_after as verify_before_after
from nodetune.verify.before_after import GONE, UNCHANGED, BeforeAfter, BeforeAfterResult
from nodetune.verify.compare import BETTER, MIN_RUNS, SAME, UNSURE, WORSE, FigureChange
from nodetune.verify.model import Figure
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records as records
from tests.support.documents import valid
from tests.support.verifying import alive, gone

QUIETLY = {"NCCL_NVLS_ENABLE": "0"}
"""What the records were measured with: otherwise it is a finding that NVLS is off."""

SLOW = records.whole(**{"memory local node0": 340.0})
FAST = records.whole(**{f"gpu_copy h2d GPU{gpu}": 60.0 for gpu in range(8)})


def idle(host):
    facts = records.facts(host=host)
    unused = dict.fromkeys(("gpu.compute_running_processes", "gpu.mps_compute_running_processes"), Absent())
    return HostFacts(host, {**facts.facts, **unused}, facts.about)


@pytest.fixture
def seen(monkeypatch):
    """Saved facts instead of a probe: host → HostFacts, Unreachable, or a list of what one look after another finds."""
    known = {}

    def look(host):
        found = known.get(host) or idle(host)
        return found.pop(0) if isinstance(found, list) else found

    monkeypatch.setattr(
        audit_hosts, "collect", lambda targets, _names, _reach: ((each, look(each.name), 0.1) for each in targets)
    )
    return known


def times(*found):
    """Each of these results as often as hosts are measured before or after."""
    return [each for result in found for each in [result] * MIN_RUNS]


def before_after(keep=lambda _when, _proofs: None, how=None, pairs=False, **hosts):
    wanted = SuiteRequest("full", repeat=MIN_RUNS, env=QUIETLY, pairs=pairs)
    how = how or records.Player(**{host: list(found) for host, found in hosts.items()})
    return BeforeAfter(wanted, records.targets(*hosts), ConnectionOptions(), how, lambda _host, _text: None, keep)


def measured(made, *hosts):
    """What a rollout of these hosts in one batch comes to."""
    assert made.before(hosts) == ""
    assert made.after(hosts) == ""
    return made.result()


def by_status(found):
    return {
        each.status: sorted(one.before.subject for one in found.changes if one.status == each.status)
        for each in found.changes
    }


# Effect of the changes


def test_no_change_states_the_smallest_visible_difference(seen):
    found = measured(before_after(gpu1=[records.whole()]), "gpu1")
    assert {each.status for each in found.changes} == {SAME}
    assert all(0 < each.smallest < 0.5 for each in found.changes)
    assert (found.code, found.missing, found.worse) == (OK, (), [])


def test_what_became_faster_changes_no_exit_code(seen):
    found = measured(before_after(gpu1=times(records.whole(), FAST)), "gpu1")
    assert by_status(found)[BETTER] == sorted(f"GPU{gpu}" for gpu in range(8) for _ in ("near", "far"))
    assert found.code == OK


def test_what_stays_slower_is_worse_and_exit_code_5(seen):
    made = before_after(gpu1=times(records.whole(), SLOW))
    found = measured(made, "gpu1")
    assert by_status(found)[WORSE] == ["node0"]
    assert made.worse == {"gpu1"}
    assert found.code == TOO_SLOW


def test_slower_once_and_not_again_is_not_blamed_on_the_changes(seen):
    made = before_after(gpu1=times(records.whole(), SLOW, records.whole()))
    found = measured(made, "gpu1")
    assert {each.status for each in found.changes} == {SAME}
    assert (made.worse, found.code) == (set(), OK)


def test_a_figure_once_below_target_is_compared_by_all_runs(seen):
    """It was below its peers; the one run in which verify looked once more is not what is compared."""
    apart = records.whole(**{"memory local node0": 300.0})
    found = measured(before_after(gpu1=[*times(apart), *times(records.whole())]), "gpu1")
    (change,) = [each for each in found.changes if (each.before.metric, each.before.subject) == ("local", "node0")]
    assert [len(each.runs) for each in (change.before, change.after)] == [MIN_RUNS, MIN_RUNS]
    assert change.status == BETTER


def test_what_is_slower_only_once_is_not_blamed(seen):
    other = records.whole(**{"memory local node1": 340.0})
    found = measured(before_after(gpu1=times(records.whole(), SLOW, other)), "gpu1")
    assert {each.status for each in found.changes} == {SAME}


def test_a_host_that_cannot_be_remeasured_keeps_its_verdict(seen):
    made = before_after(gpu1=times(records.whole(), SLOW))
    seen["gpu1"] = [idle("gpu1"), idle("gpu1"), UnreachableError("refused", "nothing listens on port 22")]
    assert measured(made, "gpu1").code == TOO_SLOW
    assert seen["gpu1"] == [], "it was looked at again"


def test_only_hosts_that_became_slower_are_measured_again(seen):
    player = records.Player(gpu1=times(records.whole(), SLOW), gpu2=[records.whole()])
    measured(before_after(how=player, gpu1=[], gpu2=[]), "gpu1", "gpu2")
    asked = [host for host, _ in player.plans]
    assert (asked.count("gpu1"), asked.count("gpu2")) == (3 * MIN_RUNS, 2 * MIN_RUNS)


# Who is measured


def test_pairs_are_measured_again_between_the_hosts_that_met_before(seen):
    """gpu3 is measured although it stayed as it was, and all three although only gpu1 became slower."""
    fast = [records.whole()]  # of a host alone, then of all together
    player = records.Player(gpu1=[*fast * 2 * MIN_RUNS, SLOW], gpu2=fast, gpu3=fast)
    made = before_after(how=player, pairs=True, gpu1=[], gpu2=[], gpu3=[])
    assert [made.before(["gpu1", "gpu2", "gpu3"]), made.after(["gpu1", "gpu2"])] == ["", ""]
    together = [(host, plan["group"]["hosts"]) for host, plan in player.plans if "group" in plan]
    assert together == [(host, ["gpu1", "gpu2", "gpu3"]) for host in ["gpu1", "gpu2", "gpu3"] * 3 * MIN_RUNS]


def test_what_is_measured_is_asked_as_of_verify():
    asked = {"disk": "/data", "pairs": True, "network": "10.1.0.0/16"}
    request = ApplyRequest(ConnectionOptions(), verify=True, canary=2, **asked)
    wanted = Prepared(request, [], []).suite
    assert wanted == SuiteRequest("quick", repeat=MIN_RUNS, **asked)
    assert {"disk_buffered", "disk_files", "tcp", "rdma"} <= {item["name"] for item in wanted.items}
    assert verify_before_after.once(wanted) > verify_before_after.once(SuiteRequest()) + 300


@pytest.mark.parametrize(("canary", "alone"), [(0, ""), (2, "finds no second host in the batch of gpu3")])
def test_a_host_without_a_second_one_in_its_batch_is_named(canary, alone):
    request = ApplyRequest(ConnectionOptions(), verify=True, pairs=True, canary=canary)
    told = Prepared(request, [], planned()).duration
    assert alone in told
    assert ("--pairs" in told) == bool(alone)


def test_a_busy_host_is_reported_without_an_option_of_verify(seen):
    seen["gpu2"] = records.facts(host="gpu2")
    player = records.Player(gpu1=[records.whole()], gpu2=[records.whole()])
    found = measured(before_after(how=player, gpu1=[], gpu2=[]), "gpu1", "gpu2")
    assert {host for host, _ in player.plans} == {"gpu1"}
    (busy,) = found.missing
    assert (busy.host, busy.when, busy.state) == ("gpu2", "before", "busy")
    assert busy.message.startswith("its GPUs are in use by python (40001)")
    assert "--allow-busy" not in busy.message
    assert found.code == INCOMPLETE


def test_an_unchanged_host_is_not_measured_again(seen):
    made = before_after(gpu1=[records.whole()])
    made.before(["gpu1"])
    made.after([])
    found = made.result()
    assert [(each.host, each.state) for each in found.missing] == [("gpu1", UNCHANGED)]
    assert (found.changes, found.code) == ((), OK)


def test_a_host_that_does_not_come_back_is_told(seen):
    seen["gpu1"] = [idle("gpu1"), UnreachableError("unreachable", "gpu1: timed out")]
    found = measured(before_after(gpu1=[records.whole()]), "gpu1")
    assert [(each.when, each.state, each.message) for each in found.missing] == [("after", "unreachable", "timed out")]
    assert found.code == INCOMPLETE


def test_a_figure_that_has_gone_is_told_by_name(seen):
    left = [each for each in records.whole() if "GPU7" not in each["subject"] or each["measurement"] != "gpu_memory"]
    found = measured(before_after(gpu1=times(records.whole(), left)), "gpu1")
    assert [(each.state, each.message) for each in found.missing] == [(GONE, "gpu_memory device_copy GPU7")]
    assert found.code == INCOMPLETE


def test_failed_measurements_are_reported_skipped_are_not(seen):
    told = [
        *records.whole(),
        {"measurement": "gemm", "failed": "out of memory", "subject": "GPU1"},
        {"measurement": "jitter", "skip": "no such thing here"},
    ]
    found = measured(before_after(gpu1=[told]), "gpu1")
    assert {(each.when, each.state, each.message) for each in found.missing} == {
        (when, "failed", "gemm GPU1: out of memory") for when in ("before", "after")
    }


def test_a_host_that_can_measure_nothing_at_all_proves_nothing(seen):
    found = measured(before_after(gpu1=[[{"measurement": "memory", "skip": "no libc"}]]), "gpu1")
    assert [each.message for each in found.missing] == ["nothing could be measured: no libc"]
    assert found.code == INCOMPLETE


def test_what_was_slow_before_and_still_is_counts_as_short(seen):
    bad = records.whole(**{"gpu_memory device_copy GPU2": 2000.0})
    found = measured(before_after(gpu1=[bad]), "gpu1")
    assert (found.worse, found.code) == ([], TOO_SLOW)
    assert {each.figure.subject for each in found.short} == {"GPU2"}


def test_both_results_are_kept_as_the_batches_go_by(seen):
    kept = []
    made = before_after(
        lambda when, proofs: kept.append((when, [each.host for each in proofs])),
        gpu1=[records.whole()],
        gpu2=[records.whole()],
    )
    for host in ("gpu2", "gpu1"):
        measured(made, host)
    assert kept == [
        ("before", ["gpu2"]),
        ("after", ["gpu2"]),
        ("before", ["gpu1", "gpu2"]),
        ("after", ["gpu1", "gpu2"]),
    ]


def test_some_figures_with_few_runs_leave_the_result_complete():
    def code(*statuses):
        figure = Figure("gpu1", "memory", "local", "node0", ((1.0,),), "GB/s")
        changes = tuple(FigureChange(figure, figure, each, 0.0) for each in statuses)
        return BeforeAfterResult(SuiteRequest(), changes, (), (HostVerification("gpu1"),)).code

    assert code(SAME, UNSURE) == OK
    assert code(UNSURE, UNSURE) == INCOMPLETE


def test_ctrl_c_while_measuring_ends_the_run(seen):
    def interrupted(*_):
        raise KeyboardInterrupt

    assert before_after(how=interrupted, gpu1=[]).before(["gpu1"]) == verify_before_after.STOPPED


# Within a rollout

HOSTS = ("gpu1", "gpu2", "gpu3")
FINDING = Finding("swappiness-high", "fail", "low", observed="60", fix=Fix("sysctl", "vm.swappiness", 10, "none"))


class Around:
    """Notes what a rollout lets it see."""

    def __init__(self, before="", worse=()):
        self.said, self.worse, self._before = [], set(worse), before

    def before(self, hosts):
        self.said.append(("before", list(hosts)))
        return self._before

    def after(self, hosts):
        self.said.append(("after", list(hosts)))
        return ""


def answered(monkeypatch, said, untouched=()):
    """Plays and audits are answered here: what machines do is tested on machines (tests/machines). `said` hears of plays."""

    def play(name, targets, *_):
        said.append((name, [each.name for each in targets]))
        results = {True: (Event("", "Put", result={"entries": [{"n": 1}]}, changed=True),), False: ()}
        return {each.name: Outcome(each.name, "ok", results=results[each.name not in untouched]) for each in targets}

    monkeypatch.setattr(rollout.play, "play", play)
    monkeypatch.setattr(
        audit_hosts, "audit_hosts", lambda targets, *_: [HostResult(each.name, "ok") for each in targets]
    )


def planned():
    """Changes that take a drained node."""
    change = PlannedChange("one", "service restart", ("swappiness-high",), ())
    return [HostPlan(HostResult(host, "ok"), (FINDING,), changes=(change,)) for host in HOSTS]


def rolled(tmp_path, monkeypatch, around, untouched=(), **how):
    """A rollout over three hosts: what became of each."""
    answered(monkeypatch, around.said, untouched)
    run = Run.create("apply", {}, list(HOSTS), None, tmp_path)
    targets = records.targets(*HOSTS)
    rolling = rollout.Rollout(targets, ApplyRequest(ConnectionOptions(), **how), run, lambda _event: None, around)
    return {each.host: each for each in rolling.apply(planned())}


def test_a_batch_is_measured_while_drained_before_resuming(tmp_path, monkeypatch):
    around = Around()
    rolled(tmp_path, monkeypatch, around, drain="slurm", canary=0)
    assert [name for name, _ in around.said] == ["drain", "before", "remediate", "after", "resume"]
    assert [hosts for name, hosts in around.said if name in ("before", "after")] == [list(HOSTS)] * 2


def test_a_canary_that_became_slower_ends_it_there(tmp_path, monkeypatch):
    around = Around(worse={"gpu1"})
    done = rolled(tmp_path, monkeypatch, around)
    assert [hosts for name, hosts in around.said if name == "remediate"] == [["gpu1"]]
    assert done["gpu2"].outcome == NOT_APPLIED
    assert "--max-failures 0" in done["gpu2"].reason


def test_hosts_that_stayed_as_they_were_are_not_measured_again(tmp_path, monkeypatch):
    around = Around()
    rolled(tmp_path, monkeypatch, around, untouched=("gpu2",), canary=0)
    assert ("after", ["gpu1", "gpu3"]) in around.said


def test_a_run_that_is_stopped_while_measuring_changes_nothing(tmp_path, monkeypatch):
    around = Around(before=verify_before_after.STOPPED)
    done = rolled(tmp_path, monkeypatch, around)
    assert [name for name, _ in around.said] == ["before"]
    assert {(each.outcome, each.reason) for each in done.values()} == {(NOT_APPLIED, verify_before_after.STOPPED)}


@pytest.mark.parametrize(("late", "code"), [(SLOW, TOO_SLOW), (records.whole(), END_STATE_MISSED)])
def test_slower_comes_before_an_end_state_that_was_not_reached(tmp_path, monkeypatch, seen, late, code):
    """The audits here judge nothing, so no step counts as fixed."""
    answered(monkeypatch, [])
    targets = records.targets(*HOSTS)
    prepared = Prepared(ApplyRequest(ConnectionOptions(), PlanSelection(), canary=0), targets, planned())
    player = records.Player(**{host: times(records.whole(), late) for host in HOSTS})
    made = before_after(how=player, **dict.fromkeys(HOSTS, ()))
    run = Run.create("apply", {}, list(HOSTS), None, tmp_path)
    report = changed(prepared, run, lambda _event: None, made)
    assert report.code == code
    stream = io.StringIO()
    _apply.print_report(stream, prepared, report, "text")
    assert ("SLOWER than before: 3 figures on gpu[1-3]" in stream.getvalue()) == (late is SLOW)
    assert "3 still failing" in stream.getvalue()
    assert f"nodetune rollback {run.id}" in stream.getvalue()


# What people and programs are told


def printed(found, done=(), single=True, width=120, monkeypatch=None):
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    text_before_after.print_gain(stream, found, done, "-i prod", single)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_worse_figures_come_first_and_the_rest_is_folded(seen, monkeypatch, width):
    found = measured(before_after(gpu1=times(records.whole(), SLOW)), "gpu1")
    text = printed(found, width=width, monkeypatch=monkeypatch)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[3].startswith("worse      memory local")
    assert "node0" in lines[3]
    assert "-17." in lines[3]
    assert sum(line.startswith("no change  gpu_p2p") for line in lines) == 1
    assert "56 pairs" in text
    before, after, change = re.search(r" ([\d.]+) +([\d.]+) GB/s +([-+][\d.]+)%", lines[3]).groups()
    assert 100 * (float(after) / float(before) - 1) == pytest.approx(float(change), abs=0.3)
    assert "SLOWER than before: 1 figure\n" in text


@pytest.mark.parametrize("width", [80, 140])
def test_hosts_are_named_where_there_are_several(seen, monkeypatch, width):
    hosts = {f"gpu{number}": times(records.whole(), SLOW if number == 3 else records.whole()) for number in (1, 2, 3)}
    found = measured(before_after(**hosts), *hosts)
    text = printed(found, single=False, width=width, monkeypatch=monkeypatch)
    assert "SLOWER than before: 1 figure on gpu3" in text
    assert "gpu[1-3]" in text
    assert max(map(len, text.splitlines())) <= width
    assert re.search(r"before +after +change", text), text
    assert re.search(r" 412.0 +340.0 GB/s +-17\.\d%", text)


def test_what_waits_for_a_boot_is_named_and_not_measured(seen, monkeypatch):
    found = measured(before_after(gpu1=[records.whole()]), "gpu1")
    pending = StepOutcome.of("gpu1", replace(FINDING, fix=Fix("kernel_arg", "iommu", "pt", "reboot")), PENDING)
    assert "not measured: settings that need the next boot" in printed(found, [pending], monkeypatch=monkeypatch)
    assert "next boot" not in printed(found, [StepOutcome.of("gpu1", FINDING, FIXED)], monkeypatch=monkeypatch)


def test_what_is_below_target_is_told_with_a_further_command(seen, monkeypatch):
    bad = records.whole(**{"gpu_memory device_copy GPU2": 2000.0})
    text = printed(measured(before_after(gpu1=[bad]), "gpu1"), monkeypatch=monkeypatch)
    assert "below      gpu_memory device_copy GPU2\n           2000 GB/s, expected at least" in text
    assert "nodetune verify -i prod --suite full --env NCCL_NVLS_ENABLE=0\n" in text


def test_the_document_keeps_its_schema(seen):
    seen["gpu2"] = records.facts(host="gpu2")
    found = measured(before_after(gpu1=times(records.whole(), SLOW), gpu2=[records.whole()]), "gpu1", "gpu2")
    told = valid("apply", json_document.text(apply.applied(apply.ApplyReport("r1", [], verified=found), [])))[
        "verified"
    ]
    assert [each["status"] for each in told["changes"] if each["subject"] == "node0"].count(WORSE) == 1
    assert [each["state"] for each in told["not_measured"]] == ["busy"]
    assert valid("apply", json_document.text(apply.applied(apply.ApplyReport(None, []), [])))["verified"] is None


def test_how_long_it_takes_is_told_for_each_batch():
    assert "5 times before and 5 times after" in verify_before_after.duration(SuiteRequest(repeat=5), 1)
    assert "about 10 minutes," in verify_before_after.duration(SuiteRequest(repeat=5), 1)
    assert "about 20 minutes for each of 3 batches" in verify_before_after.duration(SuiteRequest(repeat=10), 3)
    assert "at most" in verify_before_after.duration(SuiteRequest("full", repeat=5), 1)
    assert "about 10 minutes" not in verify_before_after.duration(SuiteRequest(disk="/data", repeat=5), 1)


def cli(*words):
    return CliRunner().invoke(group, ["apply", *map(str, words)])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--suite", "full"], "need --verify"),
        (["--repeat", "7"], "need --verify"),
        (["--disk", "/data"], "need --verify"),
        (["--pairs", "--canary", "2"], "need --verify"),
        (["--verify", "--network", "10.1.0.0/16"], "--network needs --pairs"),
        (["--verify", "--pairs"], "--canary and --batch need 2 or more"),
        (["--verify", "--pairs", "--canary", "0", "--batch", "1"], "--canary and --batch need 2 or more"),
        (["--verify", "--pairs", "--canary", "2", "--network", "ten"], "write an IPv4 network"),
        (["--verify", "--repeat", "4"], "4 is not in the range"),
        (["--verify", "--suite", "no"], "'no' is not one of"),
    ],
)
def test_a_mistake_is_told_before_any_host_is_asked(words, text):
    done = cli(*words)
    assert (done.exit_code, text in done.output) == (2, True), done.output


# For real: one harmless setting, in a room of its own

ROOM = """
set -e
cd "$1"; shift
for name in etc var/lib; do
    mkdir -p up/$name work/$name
    mount -t overlay overlay -o "lowerdir=/$name,upperdir=$PWD/up/$name,workdir=$PWD/work/$name" "/$name"
done
mount -t tmpfs tmpfs /run
cd /
exec "$@"
"""
ALONE = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
SETTING = "/proc/sys/net/ipv4/tcp_slow_start_after_idle"
CHECK = "slow-start-after-idle-on"
SHORT = """
from nodetune.verify import suites
suites.suite = lambda _: [{"name": "memory", "options": {"threads": 1, "repeats": 1}}]
from nodetune.cli import main as cli
cli.main()
"""
"""The program with a suite of one short measurement: ten runs of it take seconds."""


@pytest.fixture
def room(tmp_path):
    """room(*words) → nodetune with mounts, network and processes of its own: what it sets is gone with it.

    The folder is a tmpfs, because no overlay lies upon an overlay.
    """
    if (
        os.geteuid() != 0
        or not shutil.which("unshare")
        or subprocess.run([*ALONE, "true"], capture_output=True).returncode
    ):
        pytest.skip("needs root and the right to make namespaces")
    box = tmp_path / "box"
    box.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", box], check=True)

    def run(*words, **env):
        made = [*ALONE, "sh", "-c", ROOM, "sh", box, sys.executable, "-c", SHORT, *map(str, words)]
        return subprocess.run(
            made,
            capture_output=True,
            text=True,
            timeout=1500,
            env={**os.environ, "NODETUNE_RUNS": str(tmp_path / "runs"), "COLUMNS": "120", **env},
        )

    yield run
    subprocess.run(["umount", box], check=True)


def the_run(tmp_path):
    (found,) = record.listing(tmp_path / "runs")
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.xdist_group("verify-turn")
def test_a_real_apply_keeps_results_of_before_and_after(room, tmp_path):
    with open(SETTING) as file:
        ours = file.read()
    done = room("apply", "-s", CHECK, "--yes", "--verify", "--format", "json")
    assert "Traceback" not in done.stderr
    assert "--verify measures the hosts 5 times before" in done.stderr
    told = valid("apply", done.stdout)
    assert [each["outcome"] for each in told["steps"]] == ["fixed"]
    local = [each for each in told["verified"]["changes"] if each["metric"] == "local"]
    assert {each["subject"] for each in local} >= {"node0"}
    assert all(max(each["runs"]) <= MIN_RUNS and each["before"] > 0.1 < each["after"] for each in local)
    for each in local:  # other tests may be at work here meanwhile
        assert each["status"] in ({UNSURE} if any(each["disturbed"]) else {BETTER, WORSE, SAME})
    statuses = {each["status"] for each in told["verified"]["changes"]}
    known = INCOMPLETE if statuses == {UNSURE} else OK
    assert done.returncode == (TOO_SLOW if WORSE in statuses or told["verified"]["short"] else known)
    run = the_run(tmp_path)
    for when in ("before", "after"):
        kept = valid("verify", (run.folder / f"{when}-verify.json").read_text())
        assert kept["runs"] == MIN_RUNS
        assert all(len(each["runs"]) == MIN_RUNS for each in kept["hosts"][0]["measurements"] if "runs" in each)
    compared = room("verify", "--compare", run.folder / "before-verify.json", run.folder / "after-verify.json")
    assert "memory local" in compared.stdout
    with open(SETTING) as file:
        assert file.read() == ours, "this machine's own setting is as it was"
    assert gone(lambda: alive(str(tmp_path))) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_dry_run_measures_nothing_and_says_so(room, tmp_path):
    done = room("apply", "-s", CHECK, "--verify", "--dry-run")
    assert done.returncode == OK, done.stderr
    assert "--verify is ignored with --dry-run" in done.stderr
    assert "tcp_slow_start_after_idle = 0" in done.stdout
    assert record.listing(tmp_path / "runs") == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_where_there_is_nothing_to_do_nothing_is_measured(room, tmp_path):
    site = tmp_path / "site.yml"
    site.write_text(json.dumps({"checks": {CHECK: {"accept": 1, "set": 1}}}))
    done = room("apply", "-s", CHECK, "--site", site, "--verify", "--yes", "--format", "json")
    assert done.returncode == OK, done.stderr
    told = valid("apply", done.stdout)
    assert (told["run"], told["verified"], told["steps"]) == (None, None, [])
    assert "measures" not in done.stderr
