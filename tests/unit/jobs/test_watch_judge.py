"""The verdicts about loads recorded on H100s and H200s, and about what these lack."""

import pytest

from nodetune.jobs.watch import hosts
from nodetune.jobs.watch.model import TITLES, UNKNOWN, WORKING
from tests.support import watched

TENSOR = ("computing-tensor", "tensor")
EXPECTED = {
    "nothing": (("free", "no-process"), ("free", "no-process")),
    "gemm+copy": (TENSOR, ("memory-bound", "memory")),
    "h2d+pageable": (("host-copies", "host-copies"), ("host-copies", "host-copies")),
    "launch+mlp": (("cpu", "cpu-own"), ("cpu", "cpu-own")),
    "starved+spin": (("paused", "sleep"), ("few-sms", "few-sms")),
    "idle+fp32": (("idle", "idle"), ("computing", "arithmetic")),
    "loader+smallgemm": (("cpu", "cpu-loader"), ("cpu", "cpu-own")),
    "p2p": (("peer", "peer-copies"), ("peer", "peer-copies")),
    "late+sleeps": (("peer", "peer-late"), ("paused", "sleep")),
    "late+cpu": (("peer", "peer-late"), ("cpu", "cpu-own")),
    "late+gemm": (("peer", "peer-late"), TENSOR),
    "training": (TENSOR, TENSOR),
    "allreduce": (("peer", "peer-traffic"), ("peer", "peer-traffic")),
    "disk+diskmain": (("disk", "files"), ("disk", "files")),
    "net+gemm": (("unknown", "local"), TENSOR),
}
"""Loads → what runs on GPU0 and GPU1. The sender of `net` was on the same host, so it is not the network's fault."""


@pytest.mark.parametrize("machine", watched.MACHINES)
@pytest.mark.parametrize("loads", EXPECTED)
def test_a_recorded_load_gets_its_verdict(machine, loads):
    assert tuple(watched.verdicts(watched.facts(machine, loads)).values()) == EXPECTED[loads]


@pytest.mark.parametrize("machine", watched.MACHINES)
def test_every_recording_has_an_expected_verdict(machine):
    assert set(watched.recordings(machine)) == set(EXPECTED)


@pytest.mark.parametrize("machine", watched.MACHINES)
@pytest.mark.parametrize("loads", EXPECTED)
def test_without_gpm_a_load_gets_its_verdict_or_none(machine, loads):
    found = watched.facts(machine, loads)
    for name in found["watch.gpus"]["each"]:
        watched.gpu_of(found, name).update(gpm=None, no_gpm="no GPM here")
    for (verdict, _), (expected, _) in zip(watched.verdicts(found).values(), EXPECTED[loads], strict=True):
        assert verdict in (UNKNOWN, expected)


def test_without_gpm_the_reason_and_the_rest_are_reported():
    found = watched.facts("h200-x2", "disk+diskmain")
    watched.gpu_of(found).update(gpm=None, no_gpm="no GPM here")
    judged = watched.judged(found).gpus[0].diagnosis
    assert judged.verdict == "disk"
    assert judged.evidence[-1] == "no GPM here"


@pytest.mark.parametrize("machine", watched.MACHINES)
@pytest.mark.parametrize("loads", EXPECTED)
def test_hidden_processes_lead_to_no_other_verdict(machine, loads):
    found = watched.facts(machine, loads)
    found["watch.processes"] = {"value": {}}
    for (verdict, _), (expected, _) in zip(watched.verdicts(found).values(), EXPECTED[loads], strict=True):
        assert verdict in (UNKNOWN, expected)


def test_full_load_at_the_default_power_limit_is_computing():
    found = watched.facts("h100-x2", "gemm+copy")
    assert watched.gpu_of(found)["held"]["power"] > 0.9
    assert watched.verdicts(found)["GPU0"] == TENSOR


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"limit_watts": 400.0}, ("power", "power-limit-lowered")),
        ({"held": {"power_brake": 0.3}}, ("power", "power-brake")),
        ({"held": {"hw_thermal": 0.2, "power": 0.8}}, ("heat", "heat")),
        ({"held": {"sw_thermal": 0.2}}, ("heat", "heat")),
        ({"held": {"hw_thermal": 0.01}}, TENSOR),
        ({"held": {"power": 0.1}, "limit_watts": 400.0}, TENSOR),
    ],
)
def test_what_holds_the_clocks_back_is_named(change, verdict):
    found = watched.facts("h100-x2", "gemm+copy")
    watched.gpu_of(found).update(change)
    assert watched.verdicts(found)["GPU0"] == verdict


def test_an_idle_gpu_is_not_held_back():
    found = watched.facts("h100-x2", "idle+fp32")
    watched.gpu_of(found).update(held={"hw_thermal": 1.0})
    assert watched.verdicts(found)["GPU0"] == ("idle", "idle")


def test_work_of_a_process_that_is_not_visible_is_unknown():
    found = watched.facts("h100-x2", "gemm+copy")
    watched.gpu_of(found).update(pids=[])
    found["watch.processes"] = {"value": {}}
    assert watched.verdicts(found)["GPU0"] == ("unknown", "process-hidden")


@pytest.mark.parametrize("seen", [{"mig": True, "util": 0.0}, {"mig": False}])
def test_a_gpu_whose_use_is_not_counted_is_not_free(seen):
    found = watched.facts("h100-x2", "nothing")
    gpu = watched.gpu_of(found)
    del gpu["util"]
    gpu.update(gpm=None, no_gpm="no GPM here", **seen)
    assert watched.verdicts(found)["GPU0"] == ("unknown", "no-counters")


def test_a_process_that_ended_or_began_leaves_no_verdict():
    found = watched.facts("h100-x2", "gemm+copy")
    (pid,) = watched.gpu_of(found)["pids"]
    found["watch.processes"]["value"][str(pid)]["ended"] = True
    assert watched.verdicts(found)["GPU0"] == ("unknown", "process-ended")
    del found["watch.processes"]["value"][str(pid)]
    assert watched.verdicts(found)["GPU0"] == ("unknown", "process-new")


def main_of(loads, **change):
    """The verdict about GPU0 with other figures of the process on it."""
    found = watched.facts("h200-x2", loads)
    (pid,) = watched.gpu_of(found)["pids"]
    found["watch.processes"]["value"][str(pid)].update(change)
    return watched.verdicts(found)["GPU0"]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"doing": {"network 10.0.0.7": 0.9, "run": 0.1}}, ("network", "socket")),
        ({"doing": {"storage nfs4": 0.9, "run": 0.1}}, ("network", "files")),
        ({"doing": {"storage lustre": 0.4, "wait": 0.6}}, ("network", "files")),
        ({"doing": {"storage wekafs": 0.9, "run": 0.1}}, ("network", "files")),
        ({"doing": {"storage xfs": 0.4, "wait": 0.6}}, ("disk", "files")),
        ({"doing": {"storage xfs": 0.1, "wait": 0.9}}, ("unknown", "not-seen")),
        ({"doing": {"wait": 1.0}}, ("unknown", "not-seen")),
        ({"doing": {"run": 0.6, "wait": 0.4}, "cores": 0.55, "delay": 0.4}, ("cpu", "cpu-shared")),
        ({"doing": {"run": 0.4, "wait": 0.6}, "cores": 0.3, "delay": 0.25}, ("unknown", "not-seen")),
        ({"throttled": 0.7}, ("cpu", "cpu-limit")),
        ({"doing": {}}, ("unknown", "process-hidden")),
    ],
)
def test_the_wait_of_its_process_explains_the_gap(change, verdict):
    assert main_of("starved+spin", **change) == verdict


def test_a_loader_that_passes_its_batches_by_a_socket_is_named():
    assert main_of("loader+smallgemm", doing={"local": 0.667, "wait": 0.333}) == ("cpu", "cpu-loader")
    assert main_of("starved+spin", doing={"local": 1.0}) == ("unknown", "local")


@pytest.mark.parametrize(
    ("graphics", "cores", "verdict"), [(80, 0.9, "unknown"), (80, 0.98, "cpu"), (30, 0.7, "unknown")]
)
def test_a_thread_that_spins_for_its_kernels_is_not_the_cause(graphics, cores, verdict):
    found = watched.facts("h200-x2", "launch+mlp")
    watched.gpu_of(found)["gpm"].update(graphics=graphics)
    (pid,) = watched.gpu_of(found)["pids"]
    found["watch.processes"]["value"][str(pid)]["cores"] = cores
    assert watched.verdicts(found)["GPU0"][0] == verdict


def test_a_busy_video_decoder_is_not_the_cpu():
    found = watched.facts("h200-x2", "launch+mlp")
    watched.gpu_of(found).update(decoder=80.0)
    assert watched.verdicts(found)["GPU0"] == ("unknown", "decoder")


def test_copies_over_c2c_count():
    found = watched.facts("h200-x2", "launch+mlp")
    watched.gpu_of(found)["gpm"].update(c2c_rx=200_000.0)
    assert watched.verdicts(found)["GPU0"] == ("host-copies", "host-copies")


@pytest.mark.parametrize(("share", "verdict"), [(0.4, "host-copies"), (0.1, "few-sms")])
def test_copies_during_kernels_count_from_a_fifth_of_the_link_on(share, verdict):
    found = watched.facts("h200-x2", "starved+spin")
    gpu = watched.gpu_of(found, "GPU1")
    gpu["gpm"].update(pcie_rx=share * gpu["pcie_limit"])
    assert watched.verdicts(found)["GPU1"][0] == verdict


def test_large_products_that_also_fill_the_memory_are_computing():
    found = watched.facts("h200-x2", "gemm+copy")
    watched.gpu_of(found)["gpm"].update(tensor=80.0, dram=70.0)
    assert watched.verdicts(found)["GPU0"] == TENSOR
    watched.gpu_of(found)["gpm"].update(tensor=60.0)
    assert watched.verdicts(found)["GPU0"] == ("memory-bound", "memory")


def test_occupied_sms_that_do_little_are_unknown():
    found = watched.facts("h200-x2", "gemm+copy")
    watched.gpu_of(found)["gpm"].update(tensor=2.0, dram=10.0)
    assert watched.verdicts(found)["GPU0"] == ("unknown", "occupied")


@pytest.mark.parametrize("job", [{"slurm": "4711"}, {}])
def test_the_late_gpu_of_a_job_is_named(job):
    found = watched.facts("h200-x2", "late+cpu")
    for process in found["watch.processes"]["value"].values():
        process["job"] = job
    (host,) = hosts.with_late([watched.judged(found)])
    assert host.gpus[0].diagnosis.late == ("gpu001 GPU1 (waiting for the CPU)",)
    assert host.gpus[1].diagnosis.late == ()


def test_a_late_gpu_of_a_slurm_job_may_be_on_another_host():
    waiting, late = watched.facts("h200-x2", "late+cpu"), watched.facts("h200-x2", "loader+smallgemm")
    for found, name in ((waiting, "GPU1"), (late, "GPU1")):
        del found["watch.gpus"]["each"][name]
        for process in found["watch.processes"]["value"].values():
            process["job"] = {"slurm": "4711"}
    judged = hosts.with_late([watched.judged(waiting, "gpu001"), watched.judged(late, "gpu002")])
    assert judged[0].gpus[0].diagnosis.late == ("gpu002 GPU0 (waiting for the CPU)",)


def test_another_program_of_the_same_user_is_not_late():
    found = watched.facts("h200-x2", "late+cpu")
    (pid,) = watched.gpu_of(found, "GPU1")["pids"]
    found["watch.processes"]["value"][str(pid)]["nccl"] = False
    (host,) = hosts.with_late([watched.judged(found)])
    assert host.gpus[0].diagnosis.late == ()


def test_every_verdict_has_a_title():
    assert {verdict for both in EXPECTED.values() for verdict, _ in both} | set(WORKING) <= set(TITLES)
