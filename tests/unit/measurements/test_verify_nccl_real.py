"""NCCL on real GPUs: figures, what NCCL used for them, nodes posed by one machine, and ranks that are lost.

Skipped where there are fewer than two GPUs. A GPU node needs pytest and pynvml, nothing else that nodetune depends on:
python3 -m pytest --noconftest -c /dev/null tests/unit/measurements/test_verify_nccl_real.py
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pynvml
import pytest

ROOT = Path(__file__).parents[3]
LONG = 120.0
POSED = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}


def gpus():
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    return [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]


GPUS = gpus()
pytestmark = [
    pytest.mark.skipif(len(GPUS) < 2, reason="it takes two GPUs"),
    pytest.mark.xdist_group("real GPUs"),  # some fill the memory, others look at who uses it
]


@pytest.fixture(autouse=True)
def nothing_left():
    """Whatever happens in a test, no process of it stays on a GPU."""
    yield
    end = time.monotonic() + LONG
    while any(pynvml.nvmlDeviceGetComputeRunningProcesses(gpu) for gpu in GPUS):
        assert time.monotonic() < end, "a process is left on a GPU"
        time.sleep(0.1)


def nvlinks(gpu):
    """The active links of a GPU."""
    states = []
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        with contextlib.suppress(pynvml.NVMLError):
            states.append(pynvml.nvmlDeviceGetNvLinkState(gpu, link))
    return sum(states)


def by_hand(options, seconds=LONG):
    command = [sys.executable, "-m", "nodetune.measurements", "nccl", json.dumps(options), str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def measured(options, seconds=LONG):
    out, errors = by_hand(options, seconds).communicate()
    records = [json.loads(line) for line in out.splitlines()]
    assert records, errors
    return records


def cases(records):
    """All but how evenly the links of a GPU carried the cases."""
    return [record for record in records if record["metric"] != "least_link"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_all_collectives_come_out_right_and_over_nvlink_or_pcie(dtype):
    found = measured({"sizes": [64 << 20], "dtype": dtype})
    records = cases(found)
    over_nvlink = "P2P" in records[0]["about"]["transport"] and any(map(nvlinks, GPUS))
    assert len(found) - len(records) == (len(GPUS) if over_nvlink else 0)
    assert all(0 < min(each["samples"]) <= 100 for each in found if each not in records)
    assert [record.get("failed") for record in records] == [None] * 8
    for record in records:
        assert record["about"]["checked"] is True
        assert re.fullmatch(r"(NVLS|P2P|SHM)(\+\w+)*", record["about"]["transport"])
        assert min(record["samples"]) > 0
    assert {record["metric"] for record in records if not record["about"]["in_place"]} == {
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "alltoall",
        "sendrecv",
    }


def test_data_that_a_rank_spoils_are_noticed():
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from nodetune.measurements.nccl_support import nccl_rank\nfrom nodetune.measurements import __main__ as manually\n"
        "whole = nccl_rank.nccl_ops.brought\n"
        "def spoilt(name, size, ranks, rank, in_place):\n"
        "    offset, count, phase = whole(name, size, ranks, rank, in_place)\n"
        "    return offset, count, phase + (rank == 1)\n"
        "nccl_rank.nccl_ops.brought = spoilt\n"
        "sys.exit(manually.run(sys.argv[1:]))\n"
    )
    options = json.dumps({"sizes": [1 << 20], "gpus": [0, 1], "in_place": False})
    found = subprocess.run([sys.executable, "-c", code, "nccl", options], cwd=ROOT, capture_output=True, text=True)
    records = cases([json.loads(line) for line in found.stdout.splitlines()])
    named = {record["metric"]: record["failed"] for record in records if "failed" in record}
    assert set(named) == {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"}
    assert all(text.startswith("data came back wrong") for text in named.values())
    assert not [record for record in records if "samples" in record]


def test_records_without_p2p_name_host_memory(monkeypatch):
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    (record,) = measured({"sizes": [16 << 20], "gpus": [0, 1], "collectives": ["all_reduce"], "in_place": False})
    assert record["about"]["transport"] == "SHM"
    assert record["about"]["settings"]["NCCL_P2P_DISABLE"] == "1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpus": [0, 99]}, "GPU99 not found"),
        ({"nccl": "/nonexistent"}, "NCCL cannot be loaded: /nonexistent"),
        ({"sizes": [1 << 42]}, r"rank \d on GPU\d: .*CUDA_ERROR_OUT_OF_MEMORY"),
    ],
)
def test_what_is_not_there_is_named(options, words):
    (record,) = measured(options)
    assert re.search(words, record["failed"])


def test_one_gpu_is_nothing_to_measure():
    (record,) = measured({"gpus": [0]})
    assert record["skip"].startswith("only one GPU")


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, r"was killed \(SIGKILL\)"), (signal.SIGSTOP, "is stopped")]
)
def test_a_rank_that_is_lost_in_a_collective_is_named_at_once(number, words):
    running = by_hand({"sizes": [4 << 30], "gpus": [0, 1], "collectives": ["all_reduce"], "repeats": 50})
    for line in running.stderr:
        if "all_reduce of 4 GiB" in line:
            break
    time.sleep(1)
    (measurement,) = children(running.pid)
    os.kill(children(measurement)[-1], number)
    out, _ = running.communicate()
    assert re.search(rf"rank 1 on GPU1 \(process \d+\) {words}; it was at: all_reduce of 4 GiB", out)


def children(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_killed_supervisor_takes_its_ranks_with_it():
    running = by_hand({"sizes": [4 << 30], "gpus": [0, 1], "collectives": ["all_reduce"], "repeats": 50})
    for line in running.stderr:
        if "all_reduce of 4 GiB" in line:
            break
    running.kill()
    running.communicate()


def test_cases_beyond_the_deadline_are_counted_as_left_out():
    running = by_hand({"sizes": [4 << 30] * 40, "gpus": [0, 1], "collectives": ["all_reduce"], "in_place": False}, 12.0)
    out, errors = running.communicate()
    records = cases([json.loads(line) for line in out.splitlines()])
    assert 0 < len(records) < 40
    assert all("samples" in record for record in records)
    assert f"{40 - len(records)} of 40 cases were left out: the time was over" in errors


def test_small_messages_are_measured_by_their_latency():
    options = {"sizes": [64 << 20], "collectives": ["all_reduce"], "in_place": False, "latency_sizes": [8, 4096]}
    records = cases(measured(options))
    small = [record for record in records if record.get("unit") == "µs"]
    assert [(record["metric"], record["about"]["size"]) for record in small] == [
        ("all_reduce_latency", 8),
        ("all_reduce_latency", 4096),
        ("alltoall_latency", 4096),
    ]
    assert all(min(record["samples"]) > 0 and record["better"] == "lower" for record in small)
    assert [record["metric"] for record in records if record not in small] == ["all_reduce"]


def test_both_slow_down_when_a_product_runs_with_a_collective():
    command = [
        sys.executable,
        "-m",
        "nodetune.measurements",
        "nccl_overlap",
        json.dumps({"sizes": [1 << 30]}),
        str(LONG),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    moved, computed = [json.loads(line) for line in done.stdout.splitlines()]
    assert (moved["metric"], computed["metric"]) == ("all_reduce_with_gemm", "gemm_with_all_reduce"), done.stderr
    assert 0 < max(moved["samples"]) < 1.05 * moved["about"]["alone"]
    assert 0 < max(computed["samples"]) < 1.05 * computed["about"]["alone"]
