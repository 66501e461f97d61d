"""The search on hosts: what their events say as answers, their order, slow parts by themselves, and the report."""

import io
import json

import jsonschema
import pytest

from nodetune.facts.machine import Machine
from nodetune.foundation import UserError, paths
from nodetune.foundation.stage_output import Silent
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.live_pool import Ended
from nodetune.report.text import find_slow as report
from nodetune.verify.find_slow import document, labels
from nodetune.verify.find_slow.host_rounds import HostRounds, RoundSettings
from nodetune.verify.find_slow.model import PAIRS, SOLO, Culprit, Doubt, Fleet, Part, Round, SearchResult
from nodetune.verify.find_slow.run import SlowSearch, ordered
from nodetune.verify.find_slow.stragglers import Straggler, confirmed, stragglers
from nodetune.verify.model import Figure
from tests.support import commandline

SCHEMA = json.loads(paths.bundled("data/schemas").joinpath("find-slow.json").read_text())
HOSTS = ("a", "b", "c", "d")


def figure(subject, value, name="rails"):
    metric = "bf16" if name == "gemm" else name
    record = {"measurement": name, "metric": metric, "subject": subject, "unit": "GB/s", "samples": [value]}
    return {"record": {**record, "better": "higher", "about": {}}}


def failed(reason, subject="", status="failed"):
    return {"record": {"measurement": "rails", "metric": "", "subject": subject, "unit": "", status: reason}}


def answers(kind, groups, events, seconds=5.0):
    """What rounds answer if hosts report these events."""

    def how(targets, plan_for, _connection):
        for target in targets:
            plan_for(target)
            yield target, {"begin": {}}
            for event in events.get(target.name, ()):
                yield target, event
            if not any(isinstance(event, Ended) for event in events.get(target.name, ())):
                yield target, {"done": {"measurement": "rails", "seconds": seconds}}
                yield target, Ended(None, 1.0)

    solo = ({"name": "gemm", "options": {}, "seconds": 45},)
    rounds = HostRounds([Target(name) for name in HOSTS], how, None, RoundSettings(60.0, solo), lambda *_: None)
    return rounds.execute(Round(kind, groups)), rounds


def test_a_pair_is_as_fast_as_its_slower_host_on_each_rail():
    events = {"a": [figure("rail 1", 9.0), figure("rail 0", 8.0)], "b": [figure("rail 0", 7.0)]}
    (pair, other), rounds = answers(PAIRS, ((0, 1), (2, 3)), events)
    assert (pair.figures, pair.fault) == ((7.0, 9.0), "")
    assert (other.figures, other.fault) == ((), "")
    assert rounds.unit == "GB/s"


@pytest.mark.parametrize(
    ("event", "seconds", "fault"),
    [
        (failed("rail 0 on GPU0 ended (exit status 1)"), 5.0, "failed"),
        (failed("not finished within 60 s and killed; it was at: joining"), 60.0, "hang"),
        (failed("b: nothing moved for 8 s"), 20.0, "hang"),
        (failed("the other hosts are gone"), 58.5, "hang"),
        (failed("data came back wrong: 5 words"), 5.0, "wrong data"),
        (failed("NCCL is not installed", status="skip"), 5.0, ""),
        (Ended(UnreachableError("dropped", "the connection was cut"), 1.0), 5.0, "failed"),
    ],
)
def test_what_breaks_a_run_is_its_fault(event, seconds, fault):
    (pair,), _ = answers(PAIRS, ((0, 1),), {"a": [event]}, seconds)
    assert (pair.figures, pair.fault) == ((), fault)


def test_wrong_data_of_one_rail_leaves_the_others():
    events = {"a": [figure("rail 0", 8.0)], "b": [failed("data came back wrong: 5 words", "rail 1")]}
    (pair,), _ = answers(PAIRS, ((0, 1),), events)
    assert (pair.figures, pair.fault) == ((8.0, 0.0), "wrong data")


def test_hosts_alone_are_fractions_of_the_usual_figure():
    events = {name: [figure("GPU0", 700.0, "gemm"), figure("GPU1", 700.0, "gemm")] for name in HOSTS}
    events["c"] = [figure("GPU0", 700.0, "gemm"), figure("GPU1", 350.0, "gemm")]
    found, _ = answers(SOLO, ((0,), (1,), (2,), (3,)), events)
    assert [each.figures for each in found] == [(1.0, 1.0), (1.0, 1.0), (1.0, 0.5), (1.0, 1.0)]


def test_leaves_give_the_order_and_the_domains():
    fleet = ordered([f"g{number}" for number in range(1, 9)], ["g[5-8]", "g[1-4]"], Silent())
    assert fleet.nodes == ("g5", "g6", "g7", "g8", "g1", "g2", "g3", "g4")
    assert fleet.domains == (0, 0, 0, 0, 1, 1, 1, 1)
    assert ordered(["g10", "g9"], [], Silent()).nodes == ("g9", "g10")


@pytest.mark.parametrize(
    ("hosts", "leaves", "says"),
    [
        (["g1"], [], "select at least 2"),
        (["g1", "g2", "g3"], ["g[1-2]"], "g3 must be in exactly one leaf"),
        (["g1", "g2"], ["g[1-2]", "g2"], "g2 must be in exactly one leaf"),
    ],
)
def test_leaves_that_do_not_fit_the_hosts_are_refused(hosts, leaves, says):
    with pytest.raises(UserError, match=says):
        ordered(hosts, leaves, Silent())


def test_small_leaves_are_taken_as_one():
    assert set(ordered(["g1", "g2", "g3", "g4"], ["g[1-2]", "g[3-4]"], Silent()).domains) == {0}


def alone(slow=(), count=8, metric="bf16"):
    return [
        Figure(
            f"g{host}",
            "gemm",
            metric,
            f"GPU{gpu}",
            ((700.0 + (host * 7 + gpu * 3) % 5 - 70 * ((host, gpu) in slow),),),
            "x",
        )
        for host in range(count)
        for gpu in range(8)
    ]


def test_a_gpu_that_computes_slower_than_the_fleet_is_named():
    (found,) = stragglers(alone({(3, 5)}), {})
    assert (found.host, found.subject) == ("g3", "GPU5")
    assert found.loss == pytest.approx(0.1, abs=0.01)
    assert stragglers(alone(), {}) == []


def test_few_parts_name_no_straggler():
    assert stragglers(alone({(0, 0)}, count=1)[:4], {}) == []


def test_of_few_parts_one_below_the_shipped_figure_is_named():
    h200 = Machine(model="NVIDIA H200", gpus=1)
    few = [Figure(name, "gemm", "bf16", "GPU0", ((value,),), "TFLOP/s") for name, value in (("a", 741.0), ("b", 371.0))]
    (found,) = stragglers(few, dict.fromkeys("ab", h200))
    assert (found.host, found.floor.bound) == ("b", pytest.approx(702, abs=1))
    assert found.loss == pytest.approx(0.47, abs=0.01)
    assert "2 runs; at least 70" in labels.straggler_evidence(*confirmed([found], few, {}))
    assert stragglers(few, dict.fromkeys("ab", Machine(model="NVIDIA of tomorrow", gpus=1))) == []


def test_a_straggler_that_was_quick_again_is_not_named():
    usual = {("gemm", "bf16"): 702.0}
    first = stragglers(alone({(3, 5)}), {})
    assert confirmed(first, alone(), usual) == []
    assert [each.runs for each in confirmed(first, alone({(3, 5)}), usual)] == [2]


FLEET = Fleet(("gpu1", "gpu2", "gpu3", "gpu4"), (0, 0, 1, 1), ("gpu[1-2]", "gpu[3-4]"))


def search_of(**result):
    culprits = (
        Culprit(Part("nic", (0,), 3), "", 0.21, (1, 2), (), 4, "well", 1.4),
        Culprit(Part("path", (1, 2)), "hang", 1.0, (1, 2), (), 4, "unknown", 9.0),
        Culprit(Part("uplink", (1,)), "", 0.5, (0,), (), 4, "unknown", 60.0),
    )
    doubts = (Doubt((Part("node", (3,)), Part("path", (2, 3))), 0.046, 5), Doubt((Part("node", (2,)),), 0.01, 0))
    given = {
        "culprits": culprits,
        "doubts": doubts,
        "joint_nodes": (1, 2),
        "joint_figure": 46.4,
        "level": 46.9,
        "shortfall": 0.0,
    }
    made = SearchResult(**{**given, "noise": 0.028, "falls": (10, 60, 0.08), **result})
    causes = {"gpu1": ("pcie-link-width-low: x8",)}
    slow = (Straggler("gpu4", "GPU2", "bf16", 0.12, 1e-7, 2),)
    return SlowSearch(FLEET, made, slow, seconds=(12.0, 12.0), causes=causes)


def test_the_report_has_evidence_causes_and_the_next_command():
    stream = io.StringIO()
    report.print_search(stream, search_of(), ["-i", "prod", "-l", "gpu"])
    told = " ".join(stream.getvalue().split())
    for part in (
        "gpu1 NIC 3: -21 % with gpu2, gpu3; well by itself; odds 1 : 40,552 that this is chance",
        "gpu1: pcie-link-width-low: x8",
        "nodetune audit -i prod -l gpu1",
        "path gpu2 - gpu3: hangs in 4 runs; both ends quick with others",
        "nodetune verify -i prod -l gpu2,gpu3",
        "uplink gpu[3-4]: -50 % to gpu[1-2] under load; odds 1 : 1,000,000,000",
        "gpu4 GPU2: -12 % bf16 by itself, in 2 runs",
        "gpu4 or path gpu3 - gpu4: -4.6 %, noise 2.8 %: 5 more rounds (about 1 min) would decide: --more-rounds 5",
        "gpu3: -1.0 %, noise 2.8 %: too small for this noise",
        "the figures are bimodal: 10 of 60 runs fell about -7.7 %",
        "2 hosts without gpu[1,4] as one: 46.4 GB/s, expected 46.9",
    ):
        assert part in told


@pytest.mark.parametrize(
    ("result", "expect", "words_of_it", "code"),
    [
        ({"culprits": (), "doubts": (), "shortfall": 0.08}, None, "still 8 % short: something else is left", 5),
        ({"culprits": (), "doubts": (), "joint_fault": "hang"}, None, "hangs: something else is left", 5),
        ({"culprits": (), "doubts": (), "shortfall": 0.0}, 50.0, "still 7.2 % short", 5),
        ({"culprits": (), "shortfall": 0.0}, None, "expected 46.9", 3),
        ({"culprits": (), "doubts": (), "shortfall": 0.0}, None, "expected 46.9", 0),
        ({"culprits": (), "doubts": (), "joint_nodes": ()}, None, "no hosts are left", 0),
    ],
)
def test_the_proof_says_whether_something_is_left(result, expect, words_of_it, code):
    given = search_of(**result)
    found = SlowSearch(FLEET, given.result, expect=expect)
    assert words_of_it in labels.proof(found)
    assert document.exit_code(found) == code


def test_two_hosts_have_nothing_to_be_compared_with():
    pair = Fleet(("gpu1", "gpu2"), (0, 0))
    result = SearchResult(joint_nodes=(0, 1), joint_figure=20.0, level=20.0, shortfall=0.0)
    assert "two hosts have nothing to be compared with" in labels.proof(SlowSearch(pair, result))
    assert document.exit_code(SlowSearch(pair, result)) == 3
    short = SlowSearch(pair, result, expect=40.0)
    assert "the pair is short, which host is undecided" in labels.proof(short)
    assert document.exit_code(short) == 5


def test_the_document_follows_its_schema():
    made = document.document(search_of(), ["-i", "prod"])
    jsonschema.validate(json.loads(json.dumps(made)), SCHEMA)
    assert [each["name"] for each in made["culprits"]] == ["gpu1 NIC 3", "path gpu2 - gpu3", "uplink gpu[3-4]"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--leaf", "gpu1"], "need --find-slow"),
        (["--find-slow", "--only", "gemm"], "--find-slow chooses what it measures"),
        (["--find-slow", "--format", "csv"], "writes text or json"),
        (["--find-slow", "--more-rounds", "101"], "is not in the range"),
    ],
)
def test_options_that_do_not_fit_a_search_are_refused(options, says):
    done = commandline.nodetune("verify", *options)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())


def test_one_host_is_not_searched():
    done = commandline.nodetune("verify", "--find-slow", "--allow-busy", "--transport", "local")
    assert done.returncode == 2
    assert "select at least 2" in done.stderr
