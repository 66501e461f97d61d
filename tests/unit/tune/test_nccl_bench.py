"""Trials of NCCL settings: what counts, what is banned, what failed, and what NCCL really used."""

import json
import random
import re
from pathlib import Path

import pytest

from nodetune.api.model import Unread
from nodetune.statistics.thresholds import LOOKS
from nodetune.tune import confirm, document, study
from nodetune.tune.benches.nccl_cases import APPLIED, NcclRequest, values
from nodetune.tune.headline import headline
from nodetune.tune.model import BenchError
from nodetune.verify import figures
from tests.support.nccl_host import Host, noisy

SIZES = (64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30)
CTAS = (("NCCL_MIN_CTAS", 32),)
BUFFER = (("NCCL_BUFFSIZE", 2097152),)
RECORDED = Path(__file__).parents[2] / "data" / "recordings" / "nccl" / "settings-h100x2.jsonl"


@pytest.fixture
def host():
    return Host()


def test_cases_aim_at_large_sizes_and_guard_the_small_ones(host):
    cases = host.bench().cases
    assert [case.id for case in cases if case.objective] == [
        f"{name} {size}" for size in ("256 MiB", "1 GiB") for name in ("all_reduce", "all_gather")
    ]
    assert {case.id for case in cases if not case.objective and case.judged} == {
        f"{name} {size}" for size in ("64 KiB", "1 MiB", "16 MiB") for name in ("all_reduce", "all_gather")
    }
    assert {(case.unit, case.better, case.coarse) for case in cases if case.judged} == {("GB/s", "higher", False)}
    assert {case.where for case in cases} == {"alone", "with computation", "called one by one"}


def test_a_block_is_one_measurement_of_all_its_settings(host):
    bench = host.bench(env={"NCCL_NVLS_ENABLE": "0"})
    bench.begin([BUFFER, (), CTAS], applied=False)
    trials = {setting: bench.measure(setting, bench.cases) for setting in (BUFFER, (), CTAS)}
    assert host.env == [{"NCCL_NVLS_ENABLE": "0"}] * 2, "the survey, and the block"
    assert all(trial.counts and set(trial.values) == {case.id for case in bench.cases} for trial in trials.values())
    assert trials[()].values["all_reduce 1 GiB"] == pytest.approx(100.0)
    assert trials[CTAS].values["all_reduce 1 GiB"] == pytest.approx(105.0)
    options = host.options()
    assert options["settings"] == [{}, {"NCCL_BUFFSIZE": 2097152}, {"NCCL_MIN_CTAS": 32}]
    assert (options["check"], options["apart"], options["fixed"]) == (True, False, ["NCCL_NVLS_ENABLE"])
    assert sorted(options["sizes"]) == list(SIZES)
    assert options["amounts"]["all_reduce_step 268435456"] == [7, 4], "all settings do the work that the default did"
    assert trials[CTAS].about["xids"] == "none"


def test_a_finalist_has_processes_of_its_own(host):
    bench = host.bench()
    bench.begin([CTAS, ()], applied=True)
    bench.measure(CTAS, bench.cases)
    assert (host.options()["apart"], host.options()["rounds"]) == (True, APPLIED)
    first = host.options()["seed"]
    bench.begin([CTAS, ()], applied=True)
    bench.measure((), bench.cases)
    assert host.options()["seed"] != first, "started in another order each time"


def test_a_trial_is_the_median_of_ratios_and_not_the_ratio_of_medians(host):
    wanted = NcclRequest(objective="bandwidth")
    name = {"measurement": "nccl_settings", "metric": "all_reduce", "unit": "GB/s", "better": "higher"}
    samples = [[100.0, 50.0, 90.0], [110.0, 55.0, 99.0]]
    rows = [
        {**name, "subject": f"setting {at}", "samples": each, "about": {"size": 1 << 28}}
        for at, each in enumerate(samples)
    ]
    found = values([figures.read("gpu1", row) for row in rows], [(), CTAS], wanted)
    assert found == {(): {"all_reduce 256 MiB": 90.0}, CTAS: {"all_reduce 256 MiB": pytest.approx(99.0)}}


def test_two_real_h100s_resolve_a_small_size_to_a_fraction_of_1_per_cent():
    """Recorded: the default, 16, 32 and 64 CTAs at least, 16 at most, and a policy, in one process on each GPU."""
    settings = [(), *((("SETTING", number),) for number in range(1, 6))]
    found = values(
        [figures.read("gpu1", json.loads(line)) for line in RECORDED.read_text().splitlines()], settings, NcclRequest()
    )
    gains = {case: [found[each][case] / found[()][case] - 1 for each in settings] for case in found[()]}
    assert max(map(abs, gains["all_reduce 64 KiB"])) < 0.002
    assert gains["all_reduce 256 MiB"][3] == pytest.approx(0.099, abs=0.002)
    assert gains["all_gather 1 GiB"][3] == pytest.approx(0.264, abs=0.005)
    assert gains["all_reduce 256 MiB"][4] < -0.15


def test_a_block_that_fails_is_measured_one_by_one_to_find_the_fault(host):
    def fails(settings):
        return "ncclCommInitRank: invalid usage" if {"NCCL_MIN_CTAS": 32} in settings else ""

    bench = host.bench()
    host.fails = fails
    bench.begin([(), BUFFER, CTAS], applied=False)
    trials = {setting: bench.measure(setting, bench.cases) for setting in ((), BUFFER, CTAS)}
    assert [trials[each].failed for each in ((), BUFFER, CTAS)] == ["", "", "ncclCommInitRank: invalid usage"]


def test_what_was_disturbed_is_measured_again_together(host):
    bench = host.bench()
    bench.begin([(), BUFFER, CTAS], applied=False)
    host.others = {"cpu": 0.5, "cpu_seconds": 20.0, "processes": [{"name": "fio", "pid": 7}]}
    assert bench.measure(BUFFER, bench.cases).disturbed
    host.others = {}
    assert bench.measure(BUFFER, bench.cases).counts
    before = len(host.plans)
    assert bench.measure(CTAS, bench.cases).counts and bench.measure((), bench.cases).counts
    assert len(host.plans) == before


def test_calls_that_cannot_be_recorded_are_said(host):
    host.about = {"launched": "recording a graph: CUDA_ERROR_NOT_SUPPORTED"}
    assert any("CUDA_ERROR_NOT_SUPPORTED" in note for note in host.bench().notes)


def test_some_cases_are_measured_without_the_others(host):
    bench = host.bench()
    some = [case for case in bench.cases if "64 KiB" in case.id]
    bench.begin([(), CTAS], applied=True)
    assert set(bench.measure(CTAS, some).values) == {case.id for case in some}
    assert sorted(host.options()["only"]) == [
        "all_gather 65536",
        "all_gather_call 65536",
        "all_reduce 65536",
        "all_reduce_call 65536",
    ]
    bench.begin([(), CTAS], applied=True)
    bench.measure(CTAS, bench.cases)
    assert host.options()["only"] == []


def test_only_the_cases_that_are_asked_for_are_valued(host):
    bench = host.bench()
    trial = bench.measure((), bench.cases[:1])
    assert list(trial.values) == [bench.cases[0].id]


def test_wrong_data_ban_a_setting_although_it_is_fast(host):
    bench = host.bench()
    host.extra = [
        {"measurement": "nccl", "metric": "all_reduce", "failed": "computed wrongly: 3 words of 1 GiB on rank 1"}
    ]
    trial = bench.measure(CTAS, bench.cases)
    assert "computed wrongly: 3 words" in trial.banned
    assert not trial.counts
    assert not trial.values


def test_an_xid_during_the_trial_bans_and_an_old_one_does_not(host):
    old = {"bdf": "0000:18:00.0", "xid": 13, "time": 1.0, "text": "old"}
    host.lines = [old]
    bench = host.bench()
    assert bench.measure(CTAS, bench.cases).counts
    host.lines = [old, {"bdf": "0000:18:00.0", "xid": 31, "time": 9.0, "text": "MMU Fault"}]
    assert bench.measure(CTAS, bench.cases).banned == "gpu1: Xid 31 on 0000:18:00.0: MMU Fault"
    assert bench.measure((), bench.cases).counts, "the next trial is not blamed for it"


def test_one_more_xid_of_a_known_kind_bans_too(host):
    known = {"bdf": "0000:18:00.0", "xid": 31, "first": 1.0, "time": 1.0, "count": 1, "text": "MMU Fault"}
    host.lines = [known]
    bench = host.bench()
    host.lines = [{**known, "time": 9.0, "count": 2}]
    assert bench.measure(CTAS, bench.cases).banned == "gpu1: Xid 31 on 0000:18:00.0: MMU Fault"
    assert bench.measure(CTAS, bench.cases).counts


def test_an_unreadable_kernel_log_is_said_not_taken_for_silence(host):
    host.unread = "permission denied"
    bench = host.bench()
    assert bench.xids_unknown
    assert "permission denied" in bench.measure(CTAS, bench.cases).about["xids"]


def test_gpus_whose_users_are_not_known_are_left_alone_in_one_line(host):
    host.users = Unread("the driver hangs")
    with pytest.raises(
        BenchError, match=r"^gpu1: unknown whether a process uses a GPU .*: fix this or use --allow-busy$"
    ):
        host.bench()
    assert host.bench(allow_busy=True).cases


def test_a_failed_trial_says_why_and_is_not_banned(host):
    bench = host.bench()
    host.extra = [{"measurement": "nccl", "failed": "ncclCommInitRank: invalid usage"}]
    trial = bench.measure(CTAS, bench.cases)
    assert (trial.failed, trial.banned) == ("ncclCommInitRank: invalid usage", "")
    host.extra = []
    host.rate = lambda name, size, env: None if size == 1 << 30 else 100.0
    assert bench.measure(CTAS, bench.cases).failed == "not measured: all_reduce 1 GiB, all_gather 1 GiB"


def test_a_trial_of_fewer_gpus_is_no_comparison(host):
    bench = host.bench()
    host.about = {"gpus": 1}
    assert bench.measure(CTAS, bench.cases).failed == "1 GPU of 1 node took part, a different number than by default"


def test_sizes_that_do_not_fit_are_told_and_nothing_to_improve_is_one_line(host):
    host.rate = lambda name, size, env: None if size == 16 << 30 else 100.0
    host.notes = ["16 GiB left out: 2 buffers of that size do not fit into 14 GiB of free memory"]
    bench = host.bench(sizes=(16 << 30,))
    assert bench.notes == host.notes
    with pytest.raises(BenchError, match="the objective could not be measured"):
        study.tune(bench, 60)


def test_a_lost_host_is_a_failed_trial(host):
    bench = host.bench()
    host.ended = "connection lost"
    assert bench.measure(CTAS, bench.cases).failed == "gpu1: connection lost"


def test_the_load_of_others_disturbs_a_trial(host):
    bench = host.bench()
    host.others = {"cpu": 0.5, "cpu_seconds": 20.0, "processes": [{"name": "fio", "pid": 7}]}
    trial = bench.measure(CTAS, bench.cases)
    assert "others used 50% of the CPUs (fio 7)" in trial.disturbed
    assert not trial.counts


def test_what_nccl_used_and_what_it_did_not_read_are_told(host):
    bench = host.bench()
    bench.begin([CTAS], applied=True)
    same = bench.measure(CTAS, bench.cases).about
    assert (same["changed"], same["unread"]) == ([], [])
    host.about = {"algorithm": "TREE"}
    host.extra = ["NCCL_MIN_CTAS"]
    other = bench.measure(CTAS, bench.cases).about
    assert len(other["changed"]) == len(bench.cases)
    assert other["unread"] == ["NCCL_MIN_CTAS"]


def test_a_default_with_wrong_data_or_no_figure_is_not_tuned(host):
    host.extra = [{"measurement": "nccl", "failed": "computed wrongly: 1 words"}]
    with pytest.raises(BenchError, match="default itself gives wrong data"):
        host.bench()
    host.extra = [{"measurement": "nccl", "skip": "only one GPU: NCCL has no data to move between GPUs"}]
    host.rate = host.step = host.call = lambda *_: None
    with pytest.raises(BenchError, match="one GPU"):
        host.bench()


@pytest.mark.parametrize("objective", ["bandwidth", "overlap", "latency"])
def test_what_a_host_makes_up_ends_in_no_traceback(host, objective):
    host.about = {
        "nodes": "many", "gpus": [], "nics": 7, "nvls": "yes", "gdr": 3, "channels": {}, "transport": None, "link": 1,
        "settings": [], "nccl": {"a": 1},
    }  # fmt: skip
    bench = host.bench(objective=objective)
    trial = bench.measure(CTAS, bench.cases)
    assert trial.counts
    assert not bench.parameters, "a release that is none has no variable"
    host.rate = lambda *_: 0.0
    assert bench.measure(CTAS, bench.cases).about["xids"] == "none"


def test_several_hosts_measure_as_one_group(host):
    bench = host.bench(hosts=("gpu1", "gpu2"))
    assert [plan["group"]["hosts"] for plan in host.plans] == [["gpu1", "gpu2"]] * 2
    assert bench.provenance()["hosts"] == ["gpu1", "gpu2"]


def test_small_messages_aim_at_less_time(host):
    bench = host.bench(objective="latency")
    aims = [case for case in bench.cases if case.objective and case.unit == "µs"]
    assert [case.id for case in aims][:2] == ["all_reduce 8 bytes latency", "alltoall 8 bytes latency"]
    assert {case.better for case in aims} == {"lower"}
    assert all(not case.objective for case in bench.cases if case.unit == "GB/s")


def test_overlap_aims_at_the_time_until_both_are_done(host):
    host.step = lambda name, size, env: 11.0 if env.get("NCCL_MIN_CTAS") else 10.0
    bench = host.bench(objective="auto")
    aims = [case for case in bench.cases if case.objective]
    assert {(case.unit, case.better, case.where) for case in aims} == {("ms", "lower", "with computation")}
    assert not [case for case in bench.cases if case.judged and not case.objective], (
        "alone is shown, and decides nothing"
    )
    assert bench.measure(CTAS, bench.cases).values["all_reduce 256 MiB and GEMM"] == pytest.approx(11.0)
    assert host.options()["ratio"] == 1.0


def test_more_channels_that_cost_the_computation_are_refused_for_training(host):
    more = lambda env, at_64, otherwise: at_64 if env.get("NCCL_MIN_CTAS") == "64" else otherwise  # noqa: E731
    host.rate = noisy(4, lambda name, size, env: more(env, 1.15, 1.0))
    host.step = noisy(5, lambda name, size, env: more(env, 0.11, 0.1))
    outcome = study.tune(host.bench(objective="overlap"), 1e6)
    assert outcome.state == study.NOTHING
    assert re.search(
        r"NCCL_MIN_CTAS=64: alone \+1\d\.\d %, with computation -\d+\.\d % \(.* and GEMM\), .*: not for training",
        outcome.reason,
    )
    alone = study.tune(host.bench(objective="bandwidth", only=("NCCL_MIN_CTAS",)), 1e6)
    assert alone.accepted
    assert re.search(r"alone \+1\d\.\d %, with computation -\d+\.\d % .*: not for training", alone.reason)


def more_channels_start_slower(host):
    """As two H200s: 64 CTAs are better from graphs, and 17 % slower at 1 MiB where each call is launched."""
    many = lambda env: env.get("NCCL_MIN_CTAS") == "64"  # noqa: E731
    host.rate = noisy(4, lambda name, size, env: 1.15 if many(env) else 1.0)
    jitter = random.Random(6)
    host.call = lambda name, size, env: 20.0 * jitter.gauss(1.0, 0.01) * (1.17 if many(env) and size > 65536 else 1.0)


LAUNCHED = (1 << 20, 256 << 20)
"""Sizes that a user names because his job calls them one by one."""


def test_a_loss_of_calls_one_by_one_is_told(host):
    more_channels_start_slower(host)
    outcome = study.tune(host.bench(), 1e6)
    assert outcome.setting == (("NCCL_MIN_CTAS", 64),)
    assert re.search(r"called one by one -1\d\.\d % \(all_\w+ 1 MiB\): not for many small messages", outcome.reason)


def test_a_loss_of_the_named_size_refuses(host):
    more_channels_start_slower(host)
    outcome = study.tune(host.bench(sizes=LAUNCHED), 1e6)
    assert outcome.state == study.NOTHING
    assert re.search(
        r"in the screening NCCL_MIN_CTAS=64: \+1\d\.\d %, but all_\w+ 1 MiB called one by one -1\d\.\d %: --sizes",
        outcome.reason,
    )


def test_a_refused_finalist_loses_called_one_by_one(host):
    more_channels_start_slower(host)
    outcome = study.tune(host.bench(only=("NCCL_MIN_CTAS",), sizes=LAUNCHED), 1e6)
    (confirmation,) = outcome.confirmations
    assert outcome.state == study.NOTHING
    assert re.search(r"1 MiB called one by one is 1\d\.\d % worse", confirmation.refused)
    found = json.loads(json.dumps(document.document(host.bench(), outcome, 1.0)))
    assert headline(found).settle == confirm.LEAVES_OUT


def test_jitter_of_calls_one_by_one_refuses_nothing(host):
    host.rate = noisy(4, lambda name, size, env: 1.05 if env.get("NCCL_MIN_CTAS") == "32" else 1.0)
    jitter = random.Random(7)
    host.call = lambda name, size, env: 20.0 * jitter.gauss(1.0, 0.08)
    outcome = study.tune(host.bench(sizes=LAUNCHED), 1e6)
    assert outcome.accepted
    assert "called one by one ±" in outcome.reason, "its resolution is told"


def test_cases_that_are_only_shown_delay_no_decision(host):
    host.rate = noisy(4, lambda name, size, env: 1.08 if env.get("NCCL_MIN_CTAS") == "32" else 1.0)
    jitter = random.Random(8)
    host.call = lambda name, size, env: 20.0 * jitter.gauss(1.0, 0.2)
    outcome = study.tune(host.bench(), 1e6)
    assert [len(each.before) for each in outcome.confirmations[0].cases] == [LOOKS[0][0]] * len(host.bench().cases)


def test_only_what_decides_is_measured_again(host):
    bench = host.bench()
    outcome = study.tune(bench, 1e6)
    seen = set()
    for phase, trial in outcome.trials:
        if phase == "screening" and trial.setting:
            expected = [case.id for case in bench.cases if case.judged or trial.setting not in seen]
            assert sorted(trial.values) == sorted(expected)
            seen.add(trial.setting)
    assert len(seen) < len([trial for phase, trial in outcome.trials if phase == "screening"])


def test_the_mix_of_a_job_decides_by_its_weights(host):
    host.rate = noisy(
        5,
        lambda name, size, env: {"32": {1 << 28: 1.08}, "64": {1 << 30: 1.2}}.get(env.get("NCCL_MIN_CTAS"), {}).get(
            size, 1.0
        ),
    )
    weights = {"all_reduce 268435456": 0.9, "all_reduce 1073741824": 0.05}
    mixed = {"sizes": (1 << 28, 1 << 30), "collectives": ("all_reduce",)}
    alike, weighted = (
        study.tune(host.bench(only=("NCCL_MIN_CTAS",), weights=each, **mixed), 1e6) for each in ({}, weights)
    )
    assert (alike.setting, weighted.setting) == ((("NCCL_MIN_CTAS", 64),), (("NCCL_MIN_CTAS", 32),))
    assert weighted.confirmations[-1].ratio == pytest.approx(1.08 ** (0.9 / 0.95) - 1, abs=0.004)
    cases = {case.id: (case.objective, case.judged) for case in host.bench(weights=weights, **mixed, plugin=None).cases}
    assert cases["all_reduce 64 KiB"] == (False, True)


def test_overlap_names_the_best_alone_where_it_accepts_another(host):
    some = lambda env, by: by.get(env.get("NCCL_MIN_CTAS"), 1.0)  # noqa: E731
    host.rate = noisy(4, lambda name, size, env: some(env, {"64": 1.15, "32": 1.05}))
    host.step = noisy(5, lambda name, size, env: 0.1 * some(env, {"64": 1.08, "32": 0.96}))
    outcome = study.tune(host.bench(objective="overlap"), 1e6)
    assert ("NCCL_MIN_CTAS", 32) in outcome.setting
    assert re.search(r"in the screening [^:]*NCCL_MIN_CTAS=64: .*alone \+1\d\.\d %", outcome.reason)


def test_a_proposal_is_lines_of_nccl_conf_in_a_site_file(host):
    bench = host.bench()
    added = bench.proposal((("NCCL_BUFFSIZE", 8388608), *CTAS))["add"]
    assert [(each["nccl_conf"], each["set"], each["accept"]) for each in added] == [
        ("NCCL_BUFFSIZE", "8388608", "8388608"),
        ("NCCL_MIN_CTAS", "32", "32"),
    ]
    assert bench.proposal(()) == {}


def test_a_proposal_is_a_valid_site_file(host, tmp_path):
    import yaml

    from nodetune.config import site

    path = tmp_path / "tuned.yml"
    path.write_text(yaml.safe_dump(dict(host.bench().proposal(CTAS))))
    site.read([path])


ROWS = (*CTAS, ("TUNER_ROWS", "allreduce,0,10,ring,2,1,2;allreduce,11,20,ring,4,1,2"))


@pytest.mark.parametrize(("taken", "failed"), [("2", ""), ("0", "NCCL did not take the rows of the tuner plugin")])
def test_rows_that_nccl_did_not_take_prove_nothing(host, taken, failed):
    host.rows = lambda _: taken
    bench = host.bench(plugin=Path("rows"))
    bench.begin([ROWS, ()], applied=True)
    assert bench.measure(ROWS, bench.cases).failed == failed
    assert "ncclTunerPlugin_v5" in host.options()["plugin"]


INSTALLED = {"path": "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "version": "2.28.9"}


@pytest.mark.parametrize(
    ("library", "installed", "named"),
    [
        (INSTALLED["path"], [INSTALLED, {**INSTALLED, "path": "/usr/local/lib/libnccl.so.2"}], True),
        ("libnccl.so.2", [INSTALLED], True),
        ("/opt/venv/nvidia/nccl/lib/libnccl.so.2", [INSTALLED], False),
        ("libnccl.so.2", [{**INSTALLED, "version": "2.27.3"}], False),
        ("libnccl.so.2", [], False),
    ],
)
def test_the_audit_names_a_tuning_for_another_installed_nccl(host, library, installed, named):
    host.libraries, host.about = installed, {"nccl": "2.28.9", "library": library}
    found = [each for each in host.bench().proposal(CTAS)["add"] if each.get("fact") == "nccl.libraries"]
    assert [each["accept"] for each in found] == ([{"contains": INSTALLED}] if named else [])


def test_what_the_site_sets_is_provenance_and_not_in_the_space(host):
    host.files = [
        {"name": "NCCL_MIN_CTAS", "value": "16", "file": "/etc/nccl.conf", "line": 1, "raw": "", "scope": "nccl.conf"}
    ]
    host.set = {"NCCL_BUFFSIZE": "8388608"}
    bench = host.bench()
    assert bench.provenance()["set"] == {"NCCL_BUFFSIZE": "8388608", "NCCL_MIN_CTAS": "16"}
    assert not {each.name for each in bench.parameters} & {"NCCL_BUFFSIZE", "NCCL_MIN_CTAS"}
    assert bench.left_out["NCCL_MIN_CTAS"] == "the site has set NCCL_MIN_CTAS=16"
    chosen = host.bench(only=("NCCL_MIN_CTAS",)).parameters
    assert [each.name for each in chosen] == ["NCCL_MIN_CTAS"]
    assert 16 not in chosen[0].choices


def test_a_busy_host_is_not_tuned(host):
    host.users = [{"pid": 40001, "used_memory": 1, "name": "python", "uid": 0}]
    with pytest.raises(BenchError, match=r"in use by python \(40001\).*--allow-busy"):
        host.bench()
    assert host.bench(allow_busy=True).cases


def test_provenance_changes_with_the_release(host):
    before = host.bench().provenance()
    host.about = {"nccl": "2.30.7"}
    after = host.bench().provenance()
    assert {key for key in before if before[key] != after[key]} == {"nccl"}


def test_a_study_finds_the_setting_that_is_better_at_large_sizes(host):
    host.rate = noisy(1, lambda name, size, env: 1.05 if env.get("NCCL_MIN_CTAS") == "32" and size > 1 << 26 else 1.0)
    bench = host.bench()
    outcome = study.tune(bench, 1e6)
    assert outcome.accepted
    assert ("NCCL_MIN_CTAS", 32) in outcome.setting
    assert bench.proposal(outcome.setting)["add"]


def test_a_setting_that_slows_small_messages_is_refused(host):
    def gain(name, size, env):
        better = env.get("NCCL_MIN_CTAS") == "32"
        return (1.05 if size > 1 << 26 else 0.9) if better else 1.0

    host.rate = noisy(2, gain)
    outcome = study.tune(host.bench(), 1e6)
    assert outcome.state == study.NOTHING
    assert re.search(r"NCCL_MIN_CTAS=32: \+\d\.\d %, but all_\w+ \d+ \w+ -\d+\.\d %: --plugin DIR", outcome.reason)


def test_a_setting_that_spoils_data_never_wins(host):
    wrong = {"measurement": "nccl", "metric": "all_reduce", "failed": "computed wrongly: 3 words"}

    host.rate = noisy(3, lambda name, size, env: 7.0 if env.get("NCCL_BUFFSIZE") == "8388608" else 1.0)
    host.spoils = lambda env: [wrong] if env.get("NCCL_BUFFSIZE") == "8388608" else []
    outcome = study.tune(host.bench(), 1e6)
    assert not outcome.accepted
    assert all("NCCL_BUFFSIZE" in dict(setting) for setting in outcome.dropped)
    assert outcome.dropped
