"""The order of a verify: who is measured, what is measured again, what the whole comes to."""

import json

import pytest

from nodetune.api.model import Absent, HostFacts
from nodetune.audit import hosts as audit_hosts
from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import UnreachableError
from nodetune.verify import retest, suites
from nodetune.verify import run as verify_run
from nodetune.verify.exit_code import exit_code
from nodetune.verify.model import PASS, SHORT, Expectation, Verdict
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records as records

IDLE = ("gpu.compute_running_processes", "gpu.mps_compute_running_processes")


def idle(host):
    """The facts of the node without its jobs."""
    facts = records.facts(host=host)
    return HostFacts(host, {**facts.facts, **dict.fromkeys(IDLE, Absent())}, facts.about)


@pytest.fixture
def seen(monkeypatch):
    """Saved facts instead of a probe: host → HostFacts or Unreachable."""
    known = {}
    monkeypatch.setattr(
        audit_hosts, "collect", lambda targets, _names, _reach: ((each, known[each.name], 0.1) for each in targets)
    )
    return known


def prove(player, seen, hosts=("gpu1",), even_if_busy=False, baseline=None, **wanted):
    for host in hosts:
        seen.setdefault(host, idle(host))
    prover = verify_run.VerifyRun(
        SuiteRequest(**{"suite": "full", **wanted}), ConnectionOptions(), player, lambda _host, _text: None
    )
    return prover.prove(records.targets(*hosts), baseline, even_if_busy)


def names(plan):
    return [each["name"] for each in plan["measurements"]]


def options(plan, name):
    (found,) = [each["options"] for each in plan["measurements"] if each["name"] == name]
    return found


def test_a_sound_node_is_measured_once_and_passes(seen):
    player = records.Player(gpu1=[records.whole()])
    (done,) = prove(player, seen, env={"NCCL_NVLS_ENABLE": "0"})
    assert (done.state, done.short) == ("ok", [])
    assert [names(plan) for _, plan in player.plans] == [[each["name"] for each in suites.suite("full")]]
    assert player.plans[0][1]["env"] == {"NCCL_NVLS_ENABLE": "0"}
    assert exit_code([done]) == OK


def test_what_is_below_target_is_measured_again_and_only_that(seen):
    bad = records.whole(**{"gpu_copy h2d GPU2": 26.0, "gpu_p2p p2p GPU3→GPU5": 200.0})
    player = records.Player(gpu1=[bad, bad])
    (done,) = prove(player, seen, env={"NCCL_NVLS_ENABLE": "0"})
    again = player.plans[1][1]
    assert names(again) == ["gpu_copy", "gpu_p2p"]
    assert options(again, "gpu_copy")["gpus"] == [2]
    pairs = options(again, "gpu_p2p")["only"]
    assert [3, 5] in pairs
    assert any(3 in pair and 5 not in pair for pair in pairs), "with another partner"
    assert any(5 in pair and 3 not in pair for pair in pairs)
    assert {(each.figure.subject, each.again) for each in done.short} == {("GPU2", (26.0,)), ("GPU3→GPU5", (200.0,))}
    assert exit_code([done]) == TOO_SLOW


def test_parts_slow_under_full_load_are_retested_under_it(seen):
    together = [
        records.record("gpu_copy", "h2d", f"GPU{gpu}", 20.0 if gpu == 2 else 53.0, together=True, gpus=8)
        for gpu in range(8)
    ]
    player = records.Player(gpu1=[together])
    (done,) = prove(player, seen, only=("gpu_copy",))
    assert "gpus" not in options(player.plans[1][1], "gpu_copy")
    assert [(each.figure.subject, each.again) for each in done.short] == [("GPU2", (20.0,))]


def test_what_was_short_only_once_passes_and_says_so(seen):
    player = records.Player(gpu1=[records.whole(**{"gpu_memory device_copy GPU5": 3000.0}), records.whole()])
    (done,) = prove(player, seen, env={"NCCL_NVLS_ENABLE": "0"})
    assert done.short == []
    (told,) = [each.reason for each in done.verdicts if each.again]
    assert told == "below target once (3000) but not when measured again"
    assert exit_code([done]) == OK


def test_newly_measured_partners_say_which_end_is_slow(seen):
    """Only a pair is measured first; when it is measured again with others, GPU3 is slow with all of them."""
    slow = records.whole(
        **{f"gpu_p2p p2p GPU3→GPU{gpu}": 200.0 for gpu in range(8)}
        | {f"gpu_p2p p2p GPU{gpu}→GPU3": 200.0 for gpu in range(8)}
    )
    pairs = [each for each in slow if each["measurement"] == "gpu_p2p"]
    first = [each for each in pairs if each["subject"] in ("GPU3→GPU5", "GPU5→GPU3")]
    (done,) = prove(records.Player(gpu1=[first, pairs]), seen, only=("gpu_p2p",), gpus=(3, 5))
    assert {each.suspect.partition(":")[0] for each in done.short} == {"GPU3"}


def test_a_host_with_busy_gpus_is_skipped_and_users_named(seen):
    seen["gpu1"] = records.facts()
    player = records.Player(gpu1=[records.whole()])
    (done,) = prove(player, seen)
    assert done.state == "busy"
    assert done.message.startswith("its GPUs are in use by python (40001)")
    assert "--allow-busy" in done.message
    assert player.plans == []
    assert exit_code([done]) == INCOMPLETE


def test_a_busy_host_is_measured_when_told(seen):
    seen["gpu1"] = records.facts()
    (done,) = prove(records.Player(gpu1=[records.whole()]), seen, even_if_busy=True)
    assert done.state == "ok"
    assert {each.status for each in done.verdicts} >= {PASS}


def test_hosts_that_cannot_be_reached_cost_the_others_nothing(seen):
    seen["gone"] = UnreachableError("refused", "nothing listens on port 22")
    player = records.Player(gpu1=[records.whole()], cut=[UnreachableError("dropped", "the connection broke")])
    found = {each.host: each for each in prove(player, seen, ("gpu1", "gone", "cut"), env={"NCCL_NVLS_ENABLE": "0"})}
    assert [found[host].state for host in ("gpu1", "gone", "cut")] == ["ok", "refused", "dropped"]
    assert exit_code(list(found.values())) == INCOMPLETE
    assert exit_code([found["gpu1"]]) == OK


def test_a_host_is_compared_with_its_fellows(seen):
    hosts = [f"gpu{number}" for number in range(1, 6)]
    slow = {f"gpu_memory device_copy GPU{gpu}": 4100.0 for gpu in range(8)}
    runs = {host: [records.whole()] for host in hosts} | {"gpu4": [records.whole(**slow)]}
    found = prove(records.Player(**runs), seen, hosts, env={"NCCL_NVLS_ENABLE": "0"})
    assert {each.host for each in found if each.short} == {"gpu4"}


def test_runs_are_kept_apart_and_go_through_everything_in_turn(seen):
    player = records.Player(gpu1=[records.whole()])
    (done,) = prove(player, seen, repeat=3)
    assert [names(plan) for _, plan in player.plans[:3]] == [[each["name"] for each in suites.suite("full")]] * 3
    assert {len(each.figure.runs) for each in done.verdicts} == {3}


def test_a_measurement_that_failed_makes_the_result_incomplete(seen):
    told = [*records.whole(), {"measurement": "gemm", "failed": "out of memory", "subject": "GPU1"}]
    (done,) = prove(records.Player(gpu1=[told]), seen, env={"NCCL_NVLS_ENABLE": "0"})
    assert exit_code([done]) == INCOMPLETE
    assert [each.reason for each in done.unmeasured] == ["out of memory"]


def test_data_that_came_back_wrong_counts_as_fallen_short(seen):
    told = [{"measurement": "gpu_copy", "failed": "data came back wrong: 3 words differ", "subject": "GPU1"}]
    (done,) = prove(records.Player(gpu1=[told]), seen, only=("gpu_copy",))
    assert exit_code([done]) == TOO_SLOW


def test_nothing_but_skips_proves_nothing(seen):
    told = [{"measurement": "disk", "skip": "there is no fio here: install fio"}]
    (done,) = prove(records.Player(gpu1=[told]), seen, only=("disk",))
    assert exit_code([done]) == INCOMPLETE


def test_pairs_form_one_group_and_slow_ones_meet_again(seen):
    hosts = "abcdef"
    ring = [f"{one}→{other}" for one, other in zip(hosts, hosts[1:] + "a", strict=True)]
    told = {
        name: records.record("tcp", "tcp", name, 9.0 if "a" in name else 23.0, "Gb/s", pairs_at_once=3) for name in ring
    }
    player = records.Player(**{name[0]: [[each]] for name, each in told.items()})
    done = prove(player, seen, tuple(hosts), only=("tcp",))
    assert [plan["group"] for _, plan in player.plans[:6]] == [{"hosts": list(hosts)}] * 6
    assert options(player.plans[0][1], "tcp")["rounds"] == suites.ROUNDS
    (again,) = {tuple(plan["group"]["hosts"]) for _, plan in player.plans[6:]}
    assert set(again) >= {"a", "b", "f"}
    assert len(again) == 5, "the hosts of short pairs, and two that were not"
    texts = {each.suspect for one in done for each in one.short}
    assert texts == {"a: its port, cable or switch port; it is slow with b and f"}


def test_nccl_over_all_hosts_is_retested_as_one_group(seen, tmp_path):
    about = {**records.NCCL, "nodes": 2, "gpus": 16, "size": 1 << 30, "transport": "NET/IB"}
    told = [[records.record("nccl", "all_reduce", "2 nodes of 8 GPUs", value, **about)] for value in (48.0, 20.0)]
    own = records.kept(records.read(told[0], "a"), tmp_path)
    player = records.Player(a=[told[1]], b=[[]])
    done = prove(player, seen, ("a", "b"), suite="nccl", multi_node=True, baseline=own)
    assert [(host, plan["group"]["hosts"]) for host, plan in player.plans] == [("a", ["a", "b"]), ("b", ["a", "b"])] * 2
    (short,) = [each for one in done for each in one.short]
    assert short.again == (20.0,)
    assert "network between the hosts" in short.suspect


def test_ctrl_c_ends_the_run_and_what_is_known_is_judged(seen):
    def interrupted(targets, plan_for, reach):
        for number, told in enumerate(records.Player(gpu1=[records.whole()])(targets, plan_for, reach)):
            if number == 20:
                raise KeyboardInterrupt
            yield told

    (done,) = prove(interrupted, seen)
    assert done.state == "interrupted"
    assert done.verdicts
    assert exit_code([done]) == INCOMPLETE


def test_options_reach_the_measurements_that_they_are_for():
    wanted = SuiteRequest(
        "quick", gpus=(2, 5), disk="/scratch", pairs=True, nccl="/opt/libnccl.so.2", nccl_tests="/opt/tests"
    )
    plan = {"measurements": wanted.items}
    assert options(plan, "gemm")["gpus"] == [2, 5]
    assert "gpus" not in options(plan, "memory")
    assert options(plan, "disk") == {"dir": "/scratch"}
    assert options(plan, "nccl")["nccl"] == "/opt/libnccl.so.2"
    assert options(plan, "nccl")["nccl_tests"] == "/opt/tests"
    assert names(plan)[-4:] == list(PAIRS)
    assert json.dumps(plan)


PAIRS = ("tcp", "tcp_latency", "rdma", "rdma_latency")


def test_the_network_is_asked_of_pairs_and_of_nothing_else():
    plan = {"measurements": SuiteRequest("quick", pairs=True, network="10.1.0.0/16").items}
    assert {options(plan, name)["network"] for name in PAIRS} == {"10.1.0.0/16"}
    assert all("network" not in options(plan, name) for name in names(plan)[:-4])


def test_a_measurement_has_the_options_of_its_suite():
    sizes = {
        suite: options({"measurements": SuiteRequest(suite, only=("nccl",)).items}, "nccl")
        for suite in ("quick", "full")
    }
    assert sizes["quick"]["sizes"] == [512 << 20, 2 << 30, 16 << 30]
    assert "sizes" not in sizes["full"]


def test_hosts_that_meet_again_are_of_this_run_and_bounded():
    expected = Expectation("baseline", 90.0, "site")
    told = [records.record("tcp", "tcp", f"h{n}→h{n + 1}", 1.0, "Gb/s") for n in range(50)]
    short = [
        Verdict(each, SHORT, expected) for each in records.read([*told, records.record("tcp", "tcp", "evil→x", 1.0)])
    ]
    hosts = [f"h{n}" for n in range(60)]
    assert retest.meeting(short, hosts) == [*hosts[:6], *hosts[6:8]]
    assert retest.meeting(short[-1:], hosts) == []


def test_nonsense_for_a_pair_is_not_measured_again():
    measured = [{"name": "gpu_p2p", "options": {}}]
    figures = records.read([records.record("gpu_p2p", "p2p", subject, 1.0) for subject in ("GPU0", "GPU1→GPU2")])
    short = [Verdict(each, SHORT, Expectation("baseline", 90.0, "site")) for each in figures]
    (item,) = retest.items(short, measured, 2)
    assert [1, 2] in item["options"]["only"]


def test_naming_a_measurement_replaces_the_suite():
    assert [each["name"] for each in SuiteRequest(only=("memory", "disk")).items] == ["memory", "disk"]


def test_a_status_is_one_of_those_that_a_summary_counts(seen):
    bad = records.whole(**{"gpu_copy h2d GPU2": 26.0})
    (done,) = prove(records.Player(gpu1=[bad]), seen)
    assert SHORT in done.statuses
    assert len(done.statuses) == len(done.verdicts) + len(done.unmeasured)


@pytest.mark.parametrize("repeat", [1, 2])
def test_each_host_is_done_once_it_has_measured_everything(seen, repeat):
    seen |= {"gpu1": idle("gpu1"), "gpu2": UnreachableError("refused", "nothing listens")}
    player, done = records.Player(gpu1=[records.whole()] * repeat), []

    def hear(host, state, message):
        done.append((host, state, message, len(player.plans)))

    wanted = SuiteRequest(suite="full", repeat=repeat)
    prover = verify_run.VerifyRun(wanted, ConnectionOptions(), player, lambda *_: None, done=hear)
    prover.prove(records.targets("gpu1", "gpu2"), None, even_if_busy=False)
    assert done == [("gpu2", "refused", "nothing listens", 0), ("gpu1", "ok", "", repeat)]
