"""The GPU measurements against a substitute libcuda (tests/support/cuda): their arithmetic, what they check, and how they fail."""

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from nodetune.measurements import gpu_copy, gpu_load, gpu_p2p, roofline
from nodetune.measurements.cuda import cublaslt, cuda_libraries, driver_api, gpu_busy, gpu_kernels, gpus, products
from nodetune.measurements.host import report

ROOT = Path(__file__).parents[3]
SMALL = {
    "size": 16 << 20,
    "n": 64,
    "repeats": 2,
    "calls": 20,
    "seconds": 0.3,
    "settle": 0.1,
    "rest": 0,
    "side": 32,
    "large": 40,
    "most": 3,
    "metrics": ["hbm_read", "bf16"],
}
NAMES = ("gemm", "gpu_copy", "gpu_latency", "gpu_load", "gpu_memory", "gpu_overlap", "gpu_p2p", "roofline")
READS = ["hbm_read", "l2_read", "hbm_latency", "l2_latency"]


@pytest.fixture
def run(libcuda):
    """run(measurement, options, fault, gpus, deadline): its records, from processes of its own."""

    def run(name, options=None, fault="", gpus=2, deadline="60"):
        options = {**SMALL, "libcuda": libcuda, "library": libcuda, **(options or {})}
        command = [sys.executable, "-m", "nodetune.measurements", name, json.dumps(options), deadline]
        env = {**os.environ, "STAND_IN_FAULT": fault, "STAND_IN_GPUS": str(gpus)}
        found = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
        assert found.returncode == 0, found.stderr
        return [json.loads(line) for line in found.stdout.splitlines()]

    return run


def figures(records):
    """{(metric, subject): median} of what was measured."""
    return {
        (each["metric"], each["subject"]): sorted(each["samples"])[len(each["samples"]) // 2]
        for each in records
        if "samples" in each
    }


def complaints(records):
    """{subject: text} of what failed or was skipped."""
    return {each.get("subject"): each.get("failed") or each["skip"] for each in records if "samples" not in each}


# Right figures: the stand-in reckons its time by rates that tests/support/cuda/stand_in.c states


def test_copies_are_counted_each_way_and_both_ways_together(run):
    found = figures(run("gpu_copy"))
    for gpu in ("GPU0", "GPU1"):
        assert found["h2d", gpu] == pytest.approx(55)
        assert found["d2h", gpu] == pytest.approx(54)
        assert found["both", gpu] == pytest.approx(2 * 54), "over when the slower direction is"


def test_copies_of_ordinary_memory_and_during_products_are_told(run):
    records = run("gpu_overlap")
    found = figures(records)
    assert {metric for metric, _ in found} == {"pageable_h2d", "pageable_d2h", "copy_overlapped", "bf16_overlapped"}
    for gpu in ("GPU0", "GPU1"):
        assert min(found["pageable_h2d", gpu], found["pageable_d2h", gpu]) > 0
        assert found["copy_overlapped", gpu] == pytest.approx(100, rel=1e-3), "streams of the substitute never wait"
        assert found["bf16_overlapped", gpu] == pytest.approx(100, rel=1e-3)


def test_all_gpus_at_once_are_records_of_their_own(run):
    records = run("gpu_copy", {"together": True})
    together = [each for each in records if each["about"].get("together")]
    assert len(together) == 6
    assert len(records) == 12


def test_a_copy_within_a_gpu_counts_reads_and_writes(run):
    found = figures(run("gpu_memory"))
    assert found == {("device_copy", gpu): pytest.approx(2 * 2133) for gpu in ("GPU0", "GPU1")}


def test_a_buffer_becomes_smaller_where_memory_is_short(run):
    (record, _) = run("gpu_memory", {"size": 4 << 30})
    assert record["about"]["size"] == 127 << 20, "a quarter of the free 511 MiB for either buffer"


def test_pairs_of_gpus_are_measured_one_way_and_both_ways(run):
    found = figures(run("gpu_p2p", gpus=3))
    pairs = [(0, 1), (0, 2), (1, 2)]
    one_way = {("p2p", f"GPU{one}→GPU{other}") for pair in pairs for one, other in (pair, pair[::-1])}
    assert set(found) == one_way | {("p2p_both", f"GPU{one}↔GPU{other}") for one, other in pairs}
    assert {round(value) for (metric, _), value in found.items() if metric == "p2p"} == {394}
    assert {round(value) for (metric, _), value in found.items() if metric == "p2p_both"} == {788}


@pytest.mark.parametrize("only", [["GPU2→GPU0"], [[2, 0]]])
def test_single_pairs_can_be_measured_again(run, only):
    found = figures(run("gpu_p2p", {"only": only, "both": False}, gpus=3))
    assert set(found) == {("p2p", "GPU2→GPU0")}


def test_gpus_without_p2p_are_measured_through_the_host(run):
    records = run("gpu_p2p", fault="far")
    assert {each["about"]["peer_access"] for each in records} == {False}
    assert figures(records)["p2p", "GPU0→GPU1"] == pytest.approx(20)


def test_the_small_things_are_timed_on_every_gpu(run):
    records = run("gpu_latency")
    metrics = ("launch", "launch_pipelined", "launch_graph", "copy_h2d", "copy_d2h")
    assert set(figures(records)) == {(metric, gpu) for metric in metrics for gpu in ("GPU0", "GPU1")}
    assert all(value > 0 for value in figures(records).values())
    assert {(each["unit"], each["better"]) for each in records} == {("µs", "lower")}


def test_a_load_tells_its_rate_without_nvml_too(run):
    found = figures(run("gpu_load", {"seconds": 2}))
    assert found == {("tflops", gpu): pytest.approx(600, rel=0.01) for gpu in ("GPU0", "GPU1")}


def test_products_are_counted_rested_and_sustained(run):
    # So large that the first pieces are enough: it does not count how many more a busy machine gets done
    found = figures(run("gemm", {"n": 144, "seconds": 0.01}, gpus=1))
    assert found == {(metric, "GPU0"): pytest.approx(0.001) for metric in ("bf16", "bf16_sustained")}


def energy(libcuda, **more):
    """The medians of gpu_energy while each GPU takes 500 W."""
    counts = "lambda seen, name, *_: int(time.monotonic() * 5e5) if name == gpu_energy.COUNTER else None"
    options = {**SMALL, "libcuda": libcuda, "library": libcuda, "seconds": 0.2, "repeats": 1, **more}
    code = (
        "import time\nfrom nodetune.measurements import gpu_energy\n"
        "from nodetune.measurements.cuda import gpu_busy, gpus\nfrom nodetune.measurements.host import report\n"
        f"gpus.Seen.ask, gpu_busy.WINDOW_SECONDS = {counts}, 0.01\ngpu_energy.measure({options!r}, report.Report('gpu_energy', 1))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    return figures([content for kind, content in map(json.loads, found.stdout.splitlines()) if kind == "record"])


def test_energy_is_the_power_over_the_rate(libcuda):
    medians = energy(libcuda)
    for gpu in ("GPU0", "GPU1"):
        assert medians["power", gpu] > 0
        assert medians["energy", gpu] == pytest.approx(medians["power", gpu] / medians["bf16", gpu])
        assert medians["memory_power", gpu] > 0
        a_second = medians["memory", gpu] / 1000  # TB
        assert medians["memory_energy", gpu] == pytest.approx(medians["memory_power", gpu] / a_second)


def test_the_energy_of_one_load_is_measured_alone(libcuda):
    assert {metric for metric, _ in energy(libcuda, loads=["memory"])} == {"memory_energy", "memory_power", "memory"}


def test_a_roofline_tells_both_roofs_and_what_lies_under_them(run):
    found = figures(run("roofline", {"metrics": None}, gpus=1))
    memory = {"hbm_read": 3000, "l2_read": 3000, "hbm_latency": 400, "l2_latency": 400}
    multiplied = {"fp32", "fp16", "bf16", "fp8", "int8", "prefill", "even", "odd", "fp32_large"}
    multiplied |= {f"decode_{tokens}" for tokens in roofline.TOKENS}
    assert {metric: value for (metric, _), value in found.items() if metric in memory} == pytest.approx(memory)
    others = {metric: value for (metric, _), value in found.items() if metric not in memory}
    decode = {f"decode_{tokens}" for tokens in roofline.TOKENS}
    # in the stand-in, an algorithm without a workspace takes 0.8 of the time, and weights stored by input 0.9
    assert others == pytest.approx({name: 0.001 / (0.72 if name in decode else 1) for name in multiplied})


def test_a_format_that_the_gpu_lacks_is_skipped_in_words(run):
    (record,) = run("roofline", {"metrics": ["tf32"]}, gpus=1)
    assert record["skip"] == "cuBLASLt 13.1.0 has no tf32 product for this GPU (Stand-in 0)"
    assert (record["subject"], record["metric"]) == ("GPU0", "tf32")


def test_a_product_says_its_shape_and_its_operations_per_byte(run):
    (record,) = run("roofline", {"metrics": ["decode_8"]}, gpus=1)
    # 2·32·8·32 operations on 2·(32·32 + 32·8 + 32·8) bytes
    assert (record["about"]["shape"], record["about"]["intensity"]) == ("8x32x32", 5.33)


def test_a_decode_takes_the_fastest_way_and_says_what_the_usual_one_reaches(run):
    records = run("roofline", {"metrics": ["decode_8"]}, gpus=2)
    ways = [[each["about"][name] for name in ("weights", "workspace", "usual_share")] for each in records]
    assert ways == [["by input", 0, 72.0]] * 2


@pytest.mark.parametrize("metric", [*READS, "fp32", "fp16", "fp8", "int8", "decode_8"])
def test_each_wrong_result_under_a_roof_is_seen(run, metric):
    records = run("roofline", {"metrics": [metric]}, fault="wrong:1")
    assert complaints(records)["GPU1"].startswith("GPU1: data came back wrong")
    assert {subject for _, subject in figures(records)} == {"GPU0"}


# Faults


def test_a_load_too_short_to_be_measured_says_so(run):
    found = complaints(run("gpu_load", {"settle": 1e6}))
    assert found["GPU0"].endswith("0.5 s are needed after the 1e+06 s that do not count")


@pytest.mark.parametrize("name", ["gemm", "gpu_copy", "gpu_memory"])
def test_wrong_data_fails_its_gpu_and_no_other(run, name):
    records = run(name, fault="wrong:1", options={"seconds": 0})
    assert set(complaints(records)) == {"GPU1"}
    assert complaints(records)["GPU1"].startswith("GPU1: data came back wrong")
    assert {subject for _, subject in figures(records)} == {"GPU0"}


def test_wrong_data_between_gpus_names_the_direction(run):
    found = complaints(run("gpu_p2p", fault="wrong:1"))
    assert "GPU1: data came back wrong: a copy from GPU0: 1 of 4194304 words differ" in found["GPU0→GPU1"]
    assert "the first at byte 8388608" in found["GPU0→GPU1"]
    assert "GPU1→GPU0" not in found


def test_a_thread_that_computes_wrongly_is_found(run):
    found = complaints(run("gpu_load", fault="miscount:0"))
    assert found == {"GPU0": "GPU0: computed wrongly: 1 of 64 warps had a different result than the others"}


@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_that_fails_at_work_costs_the_others_nothing(run, name):
    records = run(name, {"seconds": 0} if name == "gemm" else {}, fault="lost:1", gpus=3)
    assert all(
        "GPU1" in subject and "CUDA_ERROR_LAUNCH_FAILED" in text for subject, text in complaints(records).items()
    )
    assert complaints(records)
    assert any(subject in ("GPU2", "GPU0→GPU2") for _, subject in figures(records))


def test_a_gpu_that_cannot_pin_memory_costs_others_nothing(libcuda):
    code = f"""
from nodetune.measurements import gpu_copy
from nodetune.measurements.cuda import driver_api, driver_gpu
from nodetune.measurements.host import numa
def broken(size):
    raise driver_api.CudaError(214, "GPU0: CUDA_ERROR_ECC_UNCORRECTABLE")
bad, good = driver_gpu.devices(driver_api.Driver({libcuda!r}))
for gpu in (bad, good):
    gpu.open()
bad.pinned = broken
node, cpus = next(iter(numa.nodes().items()))
host = gpu_copy._pinned_by_any(gpu_copy.Plan({{"size": 1 << 20}}), [bad, good], node, cpus, None)
good.unpin = broken
host.free()
print(host.gpu is good)
"""
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout == "True\n", found.stderr


@pytest.mark.parametrize("name", ["gpu_copy", "gpu_memory", "gpu_p2p", "gemm"])
def test_a_gpu_whose_memory_is_taken_says_how_much_is_free(run, name):
    found = complaints(run(name, {"seconds": 0}, fault="full:1", gpus=3))
    assert "8 MiB of 512 MiB are free" in found["GPU1"]


@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_in_exclusive_mode_is_named_with_what_helps(run, name):
    found = complaints(run(name, fault="taken:1"))
    assert "GPU1: opening it: CUDA_ERROR_DEVICE_UNAVAILABLE" in found["GPU1"]
    assert "exclusive" in found["GPU1"]


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("none", "skip", "CUDA sees no GPU here"),
        ("mismatch", "failed", "of different versions: reboot"),
        ("no_jit", "failed", "libnvidia-ptxjitcompiler.so.1"),
    ],
)
def test_what_is_wrong_with_the_driver_is_said_in_words(run, fault, kind, words):
    records = run("gpu_memory", fault=fault)
    assert all(words in each[kind] for each in records)
    assert records


def test_a_gpu_that_hangs_is_named_at_the_deadline(run):
    (record,) = run("gpu_memory", fault="hang:1", deadline="3")
    assert record["failed"].endswith("it was at: opening GPU1")


def test_a_library_that_cannot_be_loaded_is_named(run):
    (record,) = run("gemm", {"library": "/nowhere/libcublasLt.so.13"})
    assert "/nowhere/libcublasLt.so.13 cannot be loaded" in record["failed"]
    (record,) = run("gpu_copy", {"libcuda": "/nowhere/libcuda.so.1"})
    assert "/nowhere/libcuda.so.1" in record["failed"]


def test_a_gpu_that_is_not_there_cannot_be_asked_for(run):
    (record,) = run("gpu_memory", {"gpus": [0, "GPU7"]})
    assert record["failed"].startswith("GPU7 not found: CUDA sees GPU0, GPU1")


def test_one_gpu_has_no_pairs(run):
    (record,) = run("gpu_p2p", gpus=1)
    assert record["skip"] == "two GPUs are needed, found 1"


# Decisions


@pytest.mark.parametrize(
    ("near", "options", "wanted"),
    [
        (0, {}, [0, 3]),
        (2, {}, [2, 0]),
        (0, {"far": False}, [0]),
        (0, {"nodes": [1, 2, 9]}, [1, 2]),
        (None, {}, [0, 1, 2, 3]),
        (7, {}, [0, 1, 2, 3]),
    ],
)
def test_a_gpu_is_measured_from_the_nearest_and_farthest_node(near, options, wanted):
    distances = [[10, 12, 20, 32], [12, 10, 32, 20], [32, 20, 10, 12], [20, 32, 12, 10]]
    assert gpu_copy.places(near, [0, 1, 2, 3], lambda one, other: distances[one][other], options) == wanted


def test_memory_is_near_or_far_only_where_that_is_known():
    two, gpu = {0: [0], 1: [1]}, types.SimpleNamespace
    assert gpu_copy.local(gpu(node=1), 1, two) is True
    assert gpu_copy.local(gpu(node=1), 0, two) is False
    assert gpu_copy.local(gpu(node=None), 0, two) is None
    assert gpu_copy.local(gpu(node=None), 0, {0: [0, 1]}) is True


def test_copies_of_far_memory_are_a_share_of_near_ones():
    told = []
    report = types.SimpleNamespace(result=lambda *figure, **about: told.append((*figure, about["metric"])))
    near = {("GPU0", True): {"h2d": 50.0, "d2h": 40.0, "both": 80.0}, ("GPU1", None): {"h2d": 50.0, "d2h": 50.0}}
    gpu_copy._far_shares({**near, ("GPU0", False): {"h2d": 25.0, "d2h": 30.0, "both": 60.0}}, report)
    assert told == [("GPU0", [50.0], "%", "h2d_far_share"), ("GPU0", [75.0], "%", "d2h_far_share")]


@pytest.mark.parametrize("asked", [["GPU0"], ["GPU1→GPU1"], [[0, 1, 2]]])
def test_what_is_no_pair_is_refused(asked):
    with pytest.raises(report.MeasurementError, match="is not a pair of GPUs"):
        gpu_p2p.pairs_asked(asked)


def test_rates_are_taken_over_half_seconds_after_settling():
    times = [number * 0.1 for number in range(31)]  # a piece every 0.1 s for 3 s
    assert gpu_busy.windows(times, 1e12, settle=1.0) == pytest.approx([10.0] * 4)
    assert gpu_busy.windows(times, 1e12, settle=5.0) == []


def test_what_held_the_clocks_down_comes_with_its_share():
    def look(reasons, clock):
        hot = 80 if reasons & 0x40 else 60
        return {"clock_mhz": clock, "power_w": 700.0, "temperature_c": hot, "utilisation": 100, "reasons": reasons}

    said = gpu_load.summary([look(4, 1900), look(4, 1800), look(0, 1980), look(0x44, 1700)], gpus.Seen("GPU0"))
    assert said["reasons"] == {"sw_power_cap": 0.75, "hw_thermal_slowdown": 0.25}
    assert said["clock_mhz"] == 1900
    assert said["temperature_c"] == 80, "the highest"


def test_without_nvml_a_load_says_nothing_of_clocks():
    seen = gpus.Seen("GPU0")
    assert gpu_load.summary([gpu_load.sample(seen)], seen) == {"samples_seen": 1}


def test_bf16_is_the_upper_half_of_a_float():
    assert products.numbers(bytes.fromhex("803f00c0003e"), cublaslt.BF16) == (1.0, -2.0, 0.125)


def test_a_product_may_differ_by_its_rounding_only():
    bf16 = products.FORMATS["bf16"]
    assert products.close(90.5, 90.3, 8192, bf16)
    assert not products.close(91.5, 90.3, 8192, bf16)
    assert not products.close(90.0, 90.001, 8192, products.FORMATS["int8"])


def test_fp8_has_four_bits_of_exponent_and_three_behind_it():
    # 1, -1.875, the largest, the smallest, and the largest without an exponent: E4M3 of arXiv:2209.05433, table 1
    found = products.numbers(bytes.fromhex("38bf7e0107"), cublaslt.FP8)
    assert found == [1.0, -1.875, 448.0, 2.0**-9, 0.875 * 2.0**-6]


def test_a_bus_address_is_one_whatever_its_form():
    assert gpus.bdf(b"00000000:1B:00.0") == gpus.bdf("0000:1b:00.0") == "0000:1b:00.0"


def test_libraries_of_wheels_are_found_once(tmp_path, monkeypatch):
    folder = tmp_path / "lib/python3.12/site-packages/nvidia/cublas/lib"
    folder.mkdir(parents=True)
    (folder / "libcublasLt.so.12").touch()
    (tmp_path / "lib/python3.11").symlink_to(tmp_path / "lib/python3.12")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    found = cuda_libraries.found(("libcublasLt.so.13", "libcublasLt.so.12"), cublaslt.WHEELS)
    assert found[:2] == ["libcublasLt.so.13", "libcublasLt.so.12"]
    assert [path for path in found if path.startswith(str(tmp_path))] == [str(folder / "libcublasLt.so.12")]


def test_sizes_are_told_in_units_that_fit():
    assert [driver_api.in_words(size) for size in (8, 4096, 24 << 20, 150 << 30)] == [
        "8 bytes",
        "4 KiB",
        "24 MiB",
        "150 GiB",
    ]


def test_the_pattern_differs_from_word_to_word_and_by_seed():
    words = [gpu_kernels.pattern(number, 17) for number in range(100000)]
    assert len(set(words)) == len(words)
    assert gpu_kernels.pattern(5, 18) == gpu_kernels.pattern(6, 17) != gpu_kernels.pattern(5, 17)
