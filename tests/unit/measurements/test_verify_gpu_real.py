"""The GPU measurements on real GPUs: right figures, wrong data, full memory, and what a killed run leaves behind.

Skipped where there is no GPU. A GPU node needs pytest and pynvml, nothing else that nodetune depends on:
python3 -m pytest --noconftest -c /dev/null tests/unit/measurements/test_verify_gpu_real.py
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pynvml
import pytest

ROOT = Path(__file__).parents[3]
QUICK = {
    "gpu_copy": {"repeats": 3},
    "gpu_memory": {"repeats": 3},
    "gpu_latency": {"repeats": 3},
    "gpu_load": {"seconds": 3, "settle": 1},
    "gemm": {"repeats": 2, "seconds": 2},
    "roofline": {"repeats": 2, "metrics": ["hbm_read", "l2_latency", "tf32", "fp8", "int8", "decode_1"]},
}
METRICS = {
    "gpu_copy": {"h2d", "d2h", "both"},
    "gpu_memory": {"device_copy"},
    "gpu_latency": {"launch", "launch_pipelined", "launch_graph", "copy_h2d", "copy_d2h"},
    "gpu_load": {"tflops"},
    "gemm": {"bf16", "bf16_sustained"},
    "roofline": {"hbm_read", "l2_latency", "tf32", "fp8", "int8", "decode_1"},
}


def handles():
    """NVML's GPUs; this process never opens CUDA itself."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    return [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]


GPUS = handles()
pytestmark = [
    pytest.mark.skipif(not GPUS, reason="no GPU here"),
    pytest.mark.xdist_group("real GPUs"),  # some fill the memory, others look at who uses it
]
two_gpus = pytest.mark.skipif(len(GPUS) < 2, reason="it takes two GPUs")


def run(name, options=None, **environment):
    """The records of a measurement, run as manually."""
    command = [sys.executable, "-m", "nodetune.measurements", name, json.dumps(options or {})]
    env = {**os.environ, **environment}
    found = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=180)
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


def run_spoilt(name, spoil, options=None):
    """The records of a measurement in which `spoil` (Python) has changed something first."""
    code = (
        "import ctypes, sys\n"
        f"from nodetune.measurements import gpu_copy, gpu_load, {name}\n"
        "from nodetune.measurements.cuda import driver_api, gpu_kernels, gpus, products\nfrom nodetune.measurements.host import report\n"
        f"{spoil}\n{name}.measure({options or {}!r}, report.Report({name!r}, 1))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert found.returncode == 0, found.stderr
    said = [json.loads(line) for line in found.stdout.splitlines()]
    return [content for kind, content in said if kind == "record"]


def users():
    return {each.pid for gpu in GPUS for each in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)}


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def used():
    return sum(pynvml.nvmlDeviceGetMemoryInfo(gpu).used for gpu in GPUS)


@pytest.mark.parametrize("name", sorted(QUICK))
def test_every_gpu_is_measured(name):
    records = run(name, QUICK[name])
    assert all(record.get("samples") and min(record["samples"]) > 0 for record in records), records
    wanted = {(metric, f"GPU{number}") for metric in METRICS[name] for number in range(len(GPUS))}
    assert {(record["metric"], record["subject"]) for record in records} == wanted


def test_a_graph_costs_less_per_kernel_than_single_launches():
    found = {each["metric"]: min(each["samples"]) for each in run("gpu_latency", {"gpus": [0]})}
    assert found["launch_graph"] < found["launch_pipelined"] < found["launch"]


@two_gpus
def test_every_pair_is_measured_both_ways_and_in_both_at_once():
    records = run("gpu_p2p", {"repeats": 3})
    names = [f"GPU{number}" for number in range(len(GPUS))]
    ordered = {f"{one}→{other}" for one in names for other in names if one != other}
    unordered = {f"{one}↔{other}" for at, one in enumerate(names) for other in names[at + 1 :]}
    assert {record["subject"] for record in records if record["metric"] == "p2p"} == ordered
    assert {record["subject"] for record in records if record["metric"] == "p2p_both"} == unordered


@two_gpus
def test_all_links_of_a_gpu_carry_the_same():
    records = run("nvlink")
    assert {record["subject"] for record in records} == {f"GPU{number}" for number in range(len(GPUS))}
    for record in records:
        carried = record["about"]["carried"].values()
        assert 98 < record["samples"][0] <= 100
        assert min(carried) > 0.98 * max(carried) > 100


@two_gpus
def test_one_direction_of_one_pair_can_be_measured_again():
    records = run("gpu_p2p", {"repeats": 3, "only": ["GPU1→GPU0"], "both": False})
    assert [record["subject"] for record in records] == ["GPU1→GPU0"]


@two_gpus
def test_copies_without_direct_access_go_through_the_host():
    spoil = "gpu_p2p.Pair.connect = lambda self: False"
    records = run_spoilt("gpu_p2p", spoil, {"repeats": 2, "copies": 1, "gpus": [0, 1]})
    assert {record["about"]["peer_access"] for record in records} == {False}
    assert all(record["samples"] for record in records)


@two_gpus
def test_gpus_measured_together_say_so():
    records = run("gpu_copy", {"repeats": 3, "together": True})
    together = [record for record in records if record["about"].get("together")]
    assert len(together) == 3 * len(GPUS)
    assert {record["about"]["gpus"] for record in together} == {len(GPUS)}


SPOILT_COPY = """
same = gpu_copy.Host.same
def spoilt(self):
    ctypes.memset(self.back + self.size // 2, 0, 16)
    return same(self)
gpu_copy.Host.same = spoilt
"""
SPOILT_PATTERN = """
confirm = gpu_kernels.Kernels.confirm
def spoilt(self, address, *rest):
    self.gpu.put(address + 4096, b"\\0\\0\\0\\0")
    confirm(self, address, *rest)
gpu_kernels.Kernels.confirm = spoilt
"""


@pytest.mark.parametrize(("name", "spoil"), [("gpu_copy", SPOILT_COPY), ("gpu_memory", SPOILT_PATTERN)])
def test_wrong_data_is_a_failure_of_its_gpu(name, spoil):
    records = run_spoilt(name, spoil, {"repeats": 2, "gpus": [0]})
    assert [record["subject"] for record in records] == ["GPU0"]
    assert "data came back wrong" in records[0]["failed"]


def test_the_first_wrong_byte_is_named():
    record = run_spoilt("gpu_memory", SPOILT_PATTERN, {"repeats": 2, "gpus": [0]})[0]
    assert "1 of 1073741824 words differ, the first at byte 4096" in record["failed"]


@two_gpus
def test_wrong_data_of_a_pair_names_both():
    records = run_spoilt("gpu_p2p", SPOILT_PATTERN, {"repeats": 2, "only": ["GPU0→GPU1"], "both": False})
    assert [record["subject"] for record in records] == ["GPU0→GPU1"]
    assert "GPU1: data came back wrong: a copy from GPU0" in records[0]["failed"]


def test_a_wrong_result_under_load_is_seen():
    spoil = """
finish = gpu_load.Load.finish
def spoilt(self, *rest):
    self.gpu.wait()
    self.gpu.put(self.memory + 4 * 32 * 7, b"\\1")
    finish(self, *rest)
gpu_load.Load.finish = spoilt
"""
    records = run_spoilt("gpu_load", spoil, {"seconds": 2, "settle": 1, "gpus": [0]})
    assert "GPU0: computed wrongly: 1 of" in records[0]["failed"]


def test_a_wrong_product_is_seen():
    spoil = """
check = products.Product.check
def spoilt(self):
    self.gpu.poison(self.d, self.d_size)
    self.gpu.wait()
    check(self)
products.Product.check = spoilt
"""
    records = run_spoilt("gemm", spoil, {"repeats": 1, "rest": 0, "seconds": 0, "gpus": [0], "n": 1024})
    assert "data came back wrong: element" in records[0]["failed"]


@contextlib.contextmanager
def filled():
    """Another process that has taken nearly all of GPU0's memory."""
    code = (
        "import time\nfrom nodetune.measurements.cuda import driver_api, driver_gpu\ngpu = driver_gpu.devices(driver_api.Driver())[0]\ngpu.open()\n"
        "gpu.allocate(gpu.free_memory()[0] - (24 << 20))\nprint('full', flush=True)\ntime.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "full\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", ["gpu_copy", "gpu_memory", "gemm", "gpu_load"])
def test_a_gpu_without_free_memory_fails_alone(name):
    with filled():
        records = run(name, QUICK[name])
    by_subject = {}
    for record in records:
        by_subject.setdefault(record["subject"], []).append(record)
    assert len(by_subject["GPU0"]) == 1
    assert "free" in by_subject["GPU0"][0]["failed"] or "OUT_OF_MEMORY" in by_subject["GPU0"][0]["failed"]
    others = [record for subject in by_subject if subject != "GPU0" for record in by_subject[subject]]
    assert all("samples" in record for record in others)
    assert len(others) == (len(GPUS) - 1) * len(METRICS[name])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_load_leaves_nothing_on_the_gpu(number):
    before, memory = users(), used()
    command = [sys.executable, "-m", "nodetune.measurements", "gpu_load", '{"seconds": 120}', "150"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not process.stderr.readline().startswith("step: load on"):
        assert process.poll() is None
    until(lambda: used() > memory)
    process.send_signal(number)
    process.communicate()
    until(lambda: users() <= before and used() <= memory)


def test_a_load_over_its_deadline_is_killed_and_located():
    before, memory = users(), used()
    command = [sys.executable, "-m", "nodetune.measurements", "gpu_load", '{"seconds": 120}', "6"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "it was at: load on GPU0" in json.loads(found.stdout)["failed"]
    until(lambda: users() <= before and used() <= memory)


def test_a_library_that_is_not_there_is_named():
    (record,) = run("gemm", {"library": "/nowhere/libcublasLt.so.13"})
    assert "/nowhere/libcublasLt.so.13" in record["failed"]
    (record,) = run("gpu_copy", {"libcuda": "/nowhere/libcuda.so.1"})
    assert "/nowhere/libcuda.so.1" in record["failed"]


def test_a_library_of_another_kind_is_refused_in_words():
    (record,) = run("gemm", {"library": "libcuda.so.1"})
    assert "libcuda.so.1 has no cublasLtGetVersion" in record["failed"]


def test_hidden_gpus_are_left_out_and_the_reason_named():
    (record,) = run("gpu_memory", CUDA_VISIBLE_DEVICES="")
    assert "CUDA_VISIBLE_DEVICES='' is set" in record["skip"]
    (record,) = run("gpu_memory", {"gpus": [99]})
    assert "GPU99 not found: CUDA sees GPU0" in record["failed"]


@two_gpus
def test_a_gpu_keeps_its_number_where_others_are_hidden():
    (record,) = run("gpu_memory", {"repeats": 2}, CUDA_VISIBLE_DEVICES="1")
    assert record["subject"] == "GPU1"
