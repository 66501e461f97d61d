"""How a readmission judges measurements and a search: what is unknown or was not measured keeps the host away."""

import pytest

from nodetune.api.model import HostFacts, Value
from nodetune.facts.machine import Machine
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK, TOO_SLOW
from nodetune.provision.readmit import resuming, stage_results
from nodetune.provision.readmit.readmission import Readmission
from nodetune.provision.record import LEFT_OUT, StageResult, failed
from nodetune.verify.find_slow.model import NODE, Culprit, Doubt, Fleet, Part, SearchResult
from nodetune.verify.find_slow.run import SlowSearch
from nodetune.verify.model import PASS, SHORT, SKIP, UNKNOWN, Figure, Unmeasured, Verdict
from nodetune.verify.run import HostVerification

GPUS = Machine("NVIDIA H200", 2)


def verdict(name="gpu_load", status=PASS, subject="GPU0"):
    return Verdict(Figure("gpu1", name, "tflops", subject, ((1.0,),), "TFLOP/s"), status)


def measured(*verdicts, machine=GPUS, state="ok", unmeasured=()):
    return HostVerification("gpu1", state, "", machine, verdicts, unmeasured)


@pytest.mark.parametrize(
    ("found", "code", "says"),
    [
        (measured(verdict()), OK, "1 figure"),
        (measured(verdict(status=SHORT)), TOO_SLOW, "below target: gpu_load tflops GPU0"),
        (measured(verdict(status=UNKNOWN)), INCOMPLETE, "no figure has something to be compared with"),
        (measured(verdict("memory", subject="node0")), INCOMPLETE, "gpu_load is required: not measured"),
        (measured(), INCOMPLETE, "nothing could be measured"),
        (measured(verdict(), state="busy"), INCOMPLETE, "busy"),
        (measured(verdict(), state="interrupted"), INCOMPLETE, "interrupted"),
        (
            measured(verdict("memory"), unmeasured=(Unmeasured("gpu1", "gpu_load", SKIP, "no libcuda.so.1"),)),
            INCOMPLETE,
            "gpu_load was not measured: no libcuda.so.1",
        ),
        (measured(verdict("memory", subject="node0"), machine=Machine(cpu="EPYC")), OK, "1 figure"),
    ],
)
def test_only_figures_that_prove_something_let_a_host_back(found, code, says):
    came = stage_results.proved(found)
    assert (came.ok, came.code) == (code == OK, code)
    assert says in came.message


def search(**result):
    return SlowSearch(Fleet(("a", "b", "c"), (0, 0, 0)), SearchResult(**{"shortfall": 0.0, **result}))


def culprit(node):
    return Culprit(Part(NODE, (node,)), "", 0.3, (1,), (), 3, "well", 20.0)


@pytest.mark.parametrize(
    ("found", "code", "says"),
    [
        (search(), OK, "with b, c"),
        (search(culprits=(culprit(0),)), TOO_SLOW, "slow: a"),
        (search(culprits=(culprit(1),)), INCOMPLETE, "slow: b"),
        (search(doubts=(Doubt((Part(NODE, (0,)),), 0.05, 3),)), INCOMPLETE, "undecided"),
        (search(shortfall=0.2), TOO_SLOW, "the hosts as one are short"),
        (search(shortfall=None), INCOMPLETE, "no proof run"),
    ],
)
def test_a_search_that_names_or_leaves_something_open_keeps_the_host(found, code, says):
    came = stage_results.compared(found, "a")
    assert (came.ok, came.code) == (code == OK, code)
    assert says in came.message


@pytest.mark.parametrize(("present", "state", "code"), [(False, LEFT_OUT, OK), (True, "failed", INCOMPLETE)])
def test_without_commands_of_slurm_only_a_host_without_slurm_is_done(present, state, code):
    came = resuming.without_slurm(HostFacts("a", {"slurm.present": Value(present)}), "scontrol not found")
    assert (came.state, came.code) == (state, code)
    assert resuming.without_slurm(None, "scontrol not found").code == INCOMPLETE


def test_all_that_is_missing_is_one_list_with_the_highest_code():
    steps = {
        "audit": failed("xid-events: see nodetune audit", 1),
        "inventory": StageResult(LEFT_OUT),
        "verify": failed("below target: gemm", TOO_SLOW),
        "resume": failed("the drain is not the guard's", END_STATE_MISSED),
    }
    found = Readmission("a", steps)
    assert found.missing == [
        "audit: xid-events: see nodetune audit",
        "verify: below target: gemm",
        "resume: the drain is not the guard's",
    ]
    assert (found.code, found.is_back) == (TOO_SLOW, False)
