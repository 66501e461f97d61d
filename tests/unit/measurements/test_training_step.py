"""A synthetic step of training: its products on the substitute driver, what waits for what, and the figures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nodetune.measurements import training_step
from nodetune.measurements.host.report import MeasurementError
from nodetune.verify import hardware_limits
from tests.support import verify_records as records

ROOT = Path(__file__).parents[3]
PRODUCT_FLOPS, WITHIN = 1e9, 2133e9
"""What the substitute driver counts for a product and for a copy within a GPU, which poses as the all-reduce."""
ON_A_GPU = """
import json, sys
from nodetune.measurements import training_step
from nodetune.measurements.cuda import cublaslt, driver_api, driver_gpu
gpu = driver_gpu.devices(driver_api.Driver(sys.argv[1]))[0]
gpu.open()
side = 4 if "few" in sys.argv else 8
plan = training_step.Plan({"hidden": side, "tokens": side, "layers": 3, "steps": 2})
stream, size = gpu.stream(), int(sys.argv[2])
source, target = gpu.allocate(size), gpu.allocate(size)
reduce = lambda: gpu.within(target, source, size, stream)
step = training_step.Step(gpu, cublaslt.Library(sys.argv[1], 12000), plan, reduce, stream)
taken = {}
for kind in training_step.KINDS:
    step.queue(kind)
    taken[kind] = step.seconds()
step.check()
if "spoilt" in sys.argv:
    gpu.poison(step._input, plan.input)
    step.check()
print(json.dumps([taken, plan.flops, plan.input]))
"""


def on_a_gpu(libcuda, gradients, *more):
    command = [sys.executable, "-c", ON_A_GPU, libcuda, str(gradients), *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_only_what_the_last_layer_reduces_is_not_hidden(libcuda):
    taken, flops, _ = json.loads(on_a_gpu(libcuda, 1 << 20).stdout)
    assert flops == 3 * 72 * 8 * 8**2, "forward once and backward twice, 12 weights a unit of width squared"
    computing, reducing = flops / PRODUCT_FLOPS, (1 << 20) / WITHIN
    assert taken["without_all_reduce"] == pytest.approx(computing, rel=1e-3)
    assert taken["whole"] == pytest.approx(computing + reducing, rel=1e-3)


def test_a_slow_all_reduce_is_seen_in_the_step_and_not_as_input(libcuda):
    taken, flops, _ = json.loads(on_a_gpu(libcuda, 32 << 20, "few").stdout)
    first_layer = (1 / 3 + 2 / 9) * flops / PRODUCT_FLOPS
    assert taken["whole"] == pytest.approx(first_layer + 3 * (32 << 20) / WITHIN, rel=1e-3)
    assert taken["without_input"] == pytest.approx(taken["whole"], rel=1e-3)
    assert taken["without_all_reduce"] == pytest.approx(flops / PRODUCT_FLOPS, rel=1e-3)


def test_an_input_that_is_not_what_was_sent_is_a_failure(libcuda):
    found = on_a_gpu(libcuda, 1 << 10, "spoilt")
    assert found.returncode
    assert "data came back wrong: the input" in found.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layers": 0}, "layers 0: a whole number"),
        ({"hidden": 4.5}, "hidden 4.5"),
        ({"repeats": 21}, "repeats 21: 1 to 20"),
    ],
)
def test_a_senseless_size_of_a_step_is_named(options, words):
    with pytest.raises(MeasurementError, match=words):
        training_step.Plan(options)


class Heard:
    """Keeps the records of a measurement."""

    self = 0

    def __init__(self):
        self.records = {}

    def result(self, subject, samples, unit, better="higher", metric=None, **about):
        named = {"measurement": "training_step", "metric": metric, "subject": subject, "unit": unit, "better": better}
        self.records[metric] = {**named, "samples": samples, "about": about}


def test_time_mfu_and_what_stays_hidden_are_four_figures():
    heard, plan = Heard(), training_step.Plan({})
    path = {
        "via": {"P2P/CUMEM": 2},
        "transport": "P2P",
        "nics": [],
        "gdr": False,
        "settings": {},
        "channels": 24,
        "nvls": False,
        "link": "NVL",
    }
    jobs = [{"rank": 0, "gpu": "GPU0", "check": True}]
    case = {"name": "all_reduce", "size": plan.gradients, "in_place": False}
    part = {"whole": [0.060], "without_all_reduce": [0.057], "without_input": [0.060], "path": path, "chosen": {}}
    results = training_step.Results(
        [case], jobs, {"nccl": "2.28.9", "library": "", "gpus": 2, "nodes": 1}, "2 GPUs", heard
    )
    results.take(0, {"number": 0, "wrong": 0, "wrong_everywhere": 0, **part})
    found = {metric: record["samples"][0] for metric, record in heard.records.items()}
    assert found == pytest.approx(
        {"step": 60, "tflops": plan.flops / 0.06 / 1e12, "all_reduce_hidden": 95, "input_hidden": 100}
    )
    (figure,) = records.read([heard.records["tflops"]])
    assert hardware_limits.of(figure, records.h200()).what == "bf16 tensor cores, 989.4 TFLOP/s"
