"""No false proof: every shipped figure is reached by a suite, and lets no figure pass that is plainly too low."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune import data
from nodetune.measurements.nccl_support import nccl_ops, nccl_sizes, nccl_tests
from nodetune.verify import figures, reference
from nodetune.verify.evaluate import judge
from nodetune.verify.model import PASS, SHORT, UNKNOWN
from tests.support import verify_records as records

sys.path.insert(0, str(Path(__file__).parents[3] / "docs"))

import figures_page
import reach

ENTRIES = reference.entries()
H200 = records.h200()
RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
SOUND = {"gpu_memory": ("memory", 0.89), "gemm": ("bf16", 0.83), "gpu_p2p": ("nvlink", 0.87), "nccl": ("nvlink", 0.82)}
"""What sound GPUs give of what their maker states, in this repository's recordings of H200s."""
WITH_NVLS = 1.07
"""All-reduce in the switch, as a share of NVLink: 480 of 450 GB/s (NVIDIA/nccl-tests issue 212)."""


def named(entry):
    return f"{entry.file} {entry.measurement} {entry.metric} {entry.gpus} {entry.nvls} {entry.size_from}"


def verdict(found, machine):
    (one,) = judge([found], {found.host: machine})
    return one


def collective(value, **about):
    told = {"nccl": "2.28.9", "gpus": 8, "nodes": 1, "size": 16 << 30, "dtype": "float32", **about}
    (found,) = records.read([records.record("nccl", "all_reduce", "8 GPUs", value, **told)])
    return found


@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_some_suite_reaches_every_shipped_figure(entry):
    assert reach.suites_of(entry), f"{named(entry)}: nothing measures this, so it judges nobody"


def test_a_figure_beyond_the_largest_message_is_out_of_reach():
    entry = next(each for each in ENTRIES if each.measurement == "nccl")
    assert reach.suites_of(replace(entry, size_from=32 << 30)) == ()
    assert "quick" not in reach.suites_of(replace(entry, metric="all_gather"))


@pytest.mark.parametrize("entry", [each for each in ENTRIES if each.measurement == "nccl" and each.gpu], ids=named)
def test_memory_holds_the_message_that_a_figure_is_about(entry):
    known = {each["name"]: each.get("memory_mib") for each in data.table("gpus")["gpus"]}
    for free in (known[gpu] for gpu in entry.gpu):
        assert free is None or 2 * entry.size_from + nccl_sizes.ASIDE <= free << 20


def test_every_metric_is_one_that_hosts_report():
    told = [json.loads(line) for path in RECORDINGS.glob("verify/*.jsonl") for line in path.read_text().splitlines()]
    reported = {(each["measurement"], each.get("metric")) for each in told}
    wanted = {(each.measurement, each.metric) for each in ENTRIES if each.gpu}
    assert wanted <= reported


@pytest.mark.parametrize("entry", [each for each in ENTRIES if not each.gpu], ids=named)
def test_without_a_gpu_only_the_own_link_clock_or_rating_proves(entry):
    assert entry.of_limit or entry.of_stated or entry.drive or not entry.proves or not entry.gates


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        (each, model)
        for each in ENTRIES
        for model in each.gpu
        if each.proves and each.gates and each.measurement in SOUND
    ],
    ids=lambda value: value if isinstance(value, str) else named(value),
)
def test_a_figure_that_proves_catches_60_per_cent(entry, model):
    if entry.form != "SXM" and entry.measurement in ("nccl", "gpu_p2p"):
        pytest.skip("cards with bridges: their links do not make one fabric")
    what, share = SOUND[entry.measurement]
    share = WITH_NVLS if entry.nvls else share
    ways = 2 if entry.metric == "p2p_both" else 1
    bound = entry.at_least or entry.measured * entry.factor
    assert bound >= 0.6 * share * ways * reference.chip(model)[what]


HGX = ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200", "NVIDIA B300 SXM6 AC"]


@pytest.mark.parametrize("size", [512 << 20, 2 << 30, 16 << 30])
@pytest.mark.parametrize(("model", "sound"), zip(HGX, [480, 480, 840, 840], strict=True))
def test_a_third_of_a_sound_all_reduce_never_passes(model, sound, size):
    found = verdict(collective(0.35 * sound, nvls=True, size=size), replace(H200, model=model))
    assert found.status in (SHORT, UNKNOWN)


@pytest.mark.parametrize("model", HGX[:2])
@pytest.mark.parametrize("size", [512 << 20, 2 << 30, 16 << 30])
def test_the_quick_suite_proves_a_sound_all_reduce(model, size):
    machine = replace(H200, model=model)
    assert verdict(collective(472.0, nvls=True, size=size), machine).status == PASS
    assert verdict(collective(0.6 * 472, nvls=True, size=size), machine).status == SHORT


def test_a_loose_floor_finds_a_fault_and_proves_nothing():
    b300 = replace(H200, model="NVIDIA B300 SXM6 AC")
    below, above = (verdict(collective(value, nvls=False), b300) for value in (100.0, 500.0))
    assert (below.status, below.expected.bound) == (SHORT, 150)
    assert (above.status, above.expected.bound) == (UNKNOWN, 150)
    assert "too loose to prove anything" in above.reason


def of_nccl_tests():
    """What nccl-tests gave on eight H200s with NVLS off, in messages large enough for a figure to hold."""
    for name in ("all_reduce", "all_gather", "reduce_scatter", "alltoall"):
        text = (RECORDINGS / "nccl" / f"nccl-tests-{name}.txt").read_text()
        for (size, in_place), seconds, _ in nccl_tests.read("", text, name):
            if size >= 512 << 20:
                busbw = nccl_ops.bandwidths(name, size, seconds, 8)[1]
                about = {**records.NCCL, "size": size, "in_place": in_place}
                yield records.record("nccl", name, "8 GPUs", busbw, **about)


def of_two_gpus():
    for line in (RECORDINGS / "verify" / "nccl-h200-2gpu.jsonl").read_text().splitlines():
        told = json.loads(line)
        if told["about"]["size"] >= 1 << 30:
            yield told


TWO = replace(H200, gpus=2, numa_nodes=1)
RECORDED = [
    *((H200, each) for each in records.read(list(of_nccl_tests()))),
    *((TWO, each) for each in records.read(list(of_two_gpus()))),
    *((TWO, each) for each in records.recorded(1) if (known := reference.shipped(each, TWO, None)) and known[1].proves),
]


def test_a_launch_takes_tens_of_microseconds_at_most():
    (usual,) = [each for each in records.recorded(1) if (each.metric, each.subject) == ("launch", "GPU0")]
    slow = replace(usual, runs=((51.0, 55.0),))
    assert (verdict(usual, TWO).status, verdict(slow, TWO).status) == (UNKNOWN, SHORT)


def by_c2c(model, metric, value):
    (found,) = records.read([records.record("gpu_copy", metric, "GPU0", value, local=True)])
    links = {"GPU0": {"most_generation": 5, "most_width": 1}}
    return verdict(found, replace(H200, model=model, links=links)).status


@pytest.mark.parametrize(
    ("metric", "value"), [("h2d", 337.6), ("h2d", 346), ("h2d", 335.3), ("d2h", 295.2), ("d2h", 272.9)]
)
def test_what_grace_hoppers_gave_passes_and_60_per_cent_is_short(metric, value):
    """Figures that others published: nodetune has not run on NVLink-C2C."""
    assert by_c2c("NVIDIA GH200 480GB", metric, value) == PASS
    assert by_c2c("NVIDIA GH200 480GB", metric, 0.6 * value) == SHORT


def test_two_thirds_of_a_link_are_asked_of_pcie_only():
    assert (by_c2c("NVIDIA GB300", "h2d", 201), by_c2c("NVIDIA GB300", "h2d", 100)) == (UNKNOWN, SHORT)
    assert (by_c2c("NVIDIA GB200", "d2h", 193), by_c2c("NVIDIA GB200", "d2h", 100)) == (PASS, SHORT)


def test_memory_of_another_socket_is_judged_as_a_share_of_near():
    shares = [records.record("memory", "far_share", "node0→node1", share, unit="%", local=False) for share in (15, 30)]
    assert [verdict(found, H200).status for share in shares for found in records.read([share])] == [SHORT, UNKNOWN]


@pytest.mark.parametrize("entry", [each for each in ENTRIES if each.drive], ids=lambda entry: entry.note)
def test_a_drive_is_judged_by_its_rating_and_its_link(entry):
    drive = f"ACME {entry.drive[0]}3T8-00A07"

    def status(rate, generation, name=drive):
        told = {"drive": name, "drive_link": {"generation": generation, "width": 4}}
        (found,) = records.read([records.record("disk", "read", "/scratch", rate, unit="GB/s", **told)])
        return verdict(found, H200).status

    assert (status(entry.measured, 5), status(0.6 * entry.measured, 5)) == (PASS, SHORT)
    assert (status(3.5, 3), status(2.4, 3)) == (PASS, SHORT), "a slot of PCIe 3.0 carries 3.94 GB/s"
    assert status(entry.measured, 5, "ACME 9") == UNKNOWN, "nobody's rating is known"


@pytest.mark.parametrize(
    ("measurement", "metric", "short", "loose"),
    [("memory_latency", "far_share", 600, 330), ("gpu_copy", "h2d_far_share", 10, 31)],
)
def test_far_memory_that_is_much_slower_than_near_is_short(measurement, metric, short, loose):
    better = "lower" if measurement == "memory_latency" else "higher"
    subject = "node0→node1" if measurement == "memory_latency" else "GPU0"
    shares = [
        records.record(measurement, metric, subject, share, unit="%", better=better, local=False)
        for share in (short, loose)
    ]
    assert [verdict(found, H200).status for share in shares for found in records.read([share])] == [SHORT, UNKNOWN]


@pytest.mark.parametrize(
    ("machine", "found"),
    RECORDED,
    ids=[f"{each.metric} {each.subject} {figures.size(each)} {each.about.get('in_place')}" for _, each in RECORDED],
)
def test_a_recorded_figure_passes_and_60_per_cent_of_it_is_short(machine, found):
    assert verdict(found, machine).status == PASS
    planted = replace(found, runs=tuple(tuple(0.6 * sample for sample in run) for run in found.runs))
    assert verdict(planted, machine).status == SHORT


def test_the_page_names_what_reaches_a_figure_and_what_has_none():
    page = figures_page.page()
    assert (
        "| all_reduce | NVIDIA H200; 8 GPUs; nvswitch; NVLS on; from 16 GiB | 431 GB/s | passes or below | quick, full, nccl |"
        in page
    )
    assert "| p2p_both | NVIDIA H200; nvswitch | 712.1 GB/s (0.92 of 774) | passes or below | full |" in page
    (sustained,) = [line for line in page.splitlines() if line.startswith("| GEMM bf16, sustained |")]
    assert sustained.count("**none**") == 4
