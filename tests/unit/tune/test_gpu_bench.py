"""The ladder of clocks and power limits: what it refuses, what a rung is, and what a tuning makes of it."""

import random

import pytest

from nodetune.api.model import Absent, Each, HostFacts, Value
from nodetune.hosts.target import Target
from nodetune.tune import study
from nodetune.tune.benches import gpu
from nodetune.tune.benches.gpu import GpuBench, GpuRequest
from nodetune.tune.model import BenchError

H200 = "NVIDIA H200"
ALLOWED = GpuRequest(allow_gpu_settings=True)


def facts(**more):
    each = lambda value: Each({"GPU0": Value(value), "GPU1": Value(value)})  # noqa: E731
    found = {
        "gpu.nvml": Value("13"),
        "gpu.names": each(H200),
        "gpu.driver_version": Value("580.159.04"),
        "gpu.supported_clocks": each({"memory": [3201], "sm": list(range(345, 1981, 15))}),
        "gpu.power_management_limit_constraints": each([200_000, 700_000]),
        "gpu.power_management_default_limit": each(700_000),
        "gpu.compute_running_processes": each([]),
        "gpu.mps_compute_running_processes": each([]),
        "services.processes": Value({}),
    }
    return HostFacts("gpu01", found | more)


class Host:
    """A host whose GPUs take `joules(clock)` for 1e12 operations and make `rate(clock)` of them a second.

    `memory`: the joules for 1e12 bytes that they read, and the GB that they read a second, by the clock.
    """

    def __init__(self, joules, rate, noise=0.003, problem=None, gpus=("GPU0",), memory=None):
        self.gpus, self.slow, self.memory = gpus, ("", 1.0), memory
        self.joules, self.rate, self.noise, self.problem = joules, rate, noise, problem
        self.dice, self.items = random.Random(7), []
        self.held, self.users = "", ""

    def how(self, targets, plan_for, _reach):
        (item,) = plan_for(targets[0])["measurements"]
        self.items.append(item)
        held = item["options"]["set"].get("locked_clocks", [1980])[0]
        for subject in self.gpus:
            rate = self.rate(held) * (self.slow[1] if self.slow[0] == subject else 1)
            told = {
                "products": [
                    ("energy", "J/TFLOP", "lower", self.joules(held)),
                    ("bf16", "TFLOP/s", "higher", rate),
                    ("power", "W", "lower", self.joules(held) * rate),
                ],
                "memory": self.memory
                and [
                    ("memory_energy", "J/TB", "lower", self.memory[0](held)),
                    ("memory", "GB/s", "higher", self.memory[1](held)),
                    ("memory_power", "W", "lower", self.memory[0](held) * self.memory[1](held) / 1000),
                ],
            }
            records = [each for load in item["options"]["loads"] for each in told[load] or ()]
            for metric, unit, better, value in records:
                samples = [value * (1 + self.dice.gauss(0, self.noise)) for _ in range(2)]
                record = {"measurement": "gpu_energy", "metric": metric, "subject": subject, "samples": samples}
                yield targets[0], {"record": record | {"unit": unit, "better": better, "about": {}}}
        if self.held:
            others = {"gpus": [{"gpu": "GPU0", "users": self.users, "held": self.held}]}
            yield targets[0], {"done": {"measurement": "gpu_energy", "others": others}}
        if self.problem:
            yield targets[0], {"record": {"measurement": "gpu_energy", "failed": self.problem}}


def bench(host=None, wanted=ALLOWED, found=None):
    given = found or facts()
    host = host or Host(lambda _clock: 1.0, lambda _clock: 700.0)
    return GpuBench(Target("gpu01"), wanted, None, host.how, lambda *_given: {"gpu01": given})


@pytest.mark.parametrize(
    ("wanted", "found", "why"),
    [
        (GpuRequest(), facts(), "allow this with --allow-gpu-settings"),
        (ALLOWED, "connection refused", "gpu01: connection refused"),
        (ALLOWED, facts(**{"services.processes": Value({"slurmd": 1})}), "drain the node"),
        (
            ALLOWED,
            facts(**{"gpu.compute_running_processes": Each({"GPU0": Value([{"pid": 71, "name": "python3"}])})}),
            "python3 (71): a ladder needs idle GPUs",
        ),
        (ALLOWED, facts(**{"gpu.names": Each({"GPU0": Value(H200), "GPU1": Value("NVIDIA A10")})}), "has several GPU models"),
        (ALLOWED, facts(**{"gpu.nvml": Absent("no NVML library")}), "gpu01: no GPU has settings that can be changed"),
        (ALLOWED, facts(**{"gpu.supported_clocks": Absent()}), "the clocks that the GPUs support could not be read"),
    ],
    ids=["not-allowed", "unreachable", "slurm", "busy", "mixed", "no-gpu", "no-clocks"],
)  # fmt: skip
def test_what_may_not_be_changed_is_refused_in_one_line(wanted, found, why):
    with pytest.raises(BenchError) as refused:
        bench(wanted=wanted, found=found)
    assert why in str(refused.value) and "\n" not in str(refused.value)


def test_a_drained_node_of_slurm_is_taken_when_somebody_says_so():
    found = facts(**{"services.processes": Value({"slurmd": 1})})
    assert bench(wanted=GpuRequest(allow_gpu_settings=True, assume_drained=True), found=found).model == H200


def test_rungs_are_what_all_gpus_have_below_the_default():
    (clocks,) = bench().parameters
    assert clocks.choices[0] == 1965 and clocks.choices[-1] == 990 and len(clocks.choices) == 6
    assert all((clock - 345) % 15 == 0 for clock in clocks.choices)
    (limits,) = bench(wanted=GpuRequest(allow_gpu_settings=True, ladder="power", rungs=3)).parameters
    assert limits.choices == (699, 524, 350)


def test_each_value_goes_to_the_host_as_nvml_takes_it():
    assert gpu.in_nvml("power_limit", 600) == 600_000
    assert gpu.in_nvml("locked_clocks", 1500) == [1500, 1500]
    host = Host(lambda _clock: 1.0, lambda _clock: 700.0)
    made = bench(host)
    assert made.measure((), made.cases).counts and made.measure((("locked_clocks", 1575),), made.cases).counts
    assert [item["options"]["set"] for item in host.items] == [{}, {}, {"locked_clocks": [1575, 1575]}]
    assert all(item["options"]["allow_gpu_settings"] is True for item in host.items)


def test_a_rung_that_slows_work_too_much_is_never_tried_again():
    made = bench(Host(lambda clock: 0.5 + clock / 4000, lambda clock: 700 * min(1.0, clock / 1700), noise=0))
    assert made.measure((), made.cases).counts
    slow = made.measure((("locked_clocks", 1500),), made.cases)
    assert slow.banned == "11.8 % slower than the default; --max-slowdown allows 3 %" and not slow.values
    assert made.measure((("locked_clocks", 1770),), made.cases).counts


def test_settings_that_the_host_could_not_restore_end_the_tuning():
    host = Host(lambda _c: 1.0, lambda _c: 700.0)
    made = bench(host)
    host.problem = "settings of GPUs: not restored: GPU-a: Unknown Error"
    with pytest.raises(BenchError, match="not restored"):
        made.measure((), made.cases)


def test_a_counter_that_does_not_count_is_no_gain():
    host = Host(lambda _clock: 1.0, lambda _clock: 700.0)
    made = bench(host)
    host.joules = lambda _clock: 0.0
    assert made.measure((), made.cases).failed == "not measured: energy"
    with pytest.raises(BenchError, match="gpu01: the energy was not measured"):
        bench(host)


def test_a_gpu_that_is_missing_from_a_trial_fails_it():
    host = Host(lambda _clock: 1.0, lambda _clock: 700.0, gpus=("GPU0", "GPU1"))
    made = bench(host)
    assert made.measure((), made.cases).counts
    host.gpus = ("GPU0",)
    assert made.measure((), made.cases).failed == "not measured: energy, bf16 of the slowest GPU"


def test_a_rung_is_as_slow_as_its_slowest_gpu():
    host = Host(lambda _clock: 1.0, lambda _clock: 700.0, noise=0, gpus=tuple(f"GPU{n}" for n in range(8)))
    made = bench(host)
    host.slow = ("GPU5", 0.9)
    trial = made.measure((("locked_clocks", 1575),), made.cases)
    assert trial.banned == "10.0 % slower than the default; --max-slowdown allows 3 %"


def test_a_rung_that_is_measured_before_any_default_is_not_kept_if_it_is_too_slow():
    made = bench(Host(lambda clock: clock / 1980, lambda clock: 700 * clock / 1980, noise=0))
    assert made.measure((("locked_clocks", 990),), made.cases).banned.startswith("50.0 % slower")


def test_the_speed_is_told_with_the_energy():
    made = bench(Host(lambda clock: 0.4 + 0.6 * (clock / 1980) ** 2, lambda clock: 700 * min(1.0, clock / 1600)))
    (found,) = [each for each in study.tune(made, 36000.0).confirmations if not each.refused]
    assert {each.case.id: each.ratio for each in found.cases} == {
        "energy": pytest.approx(0.28, abs=0.005),
        "bf16 of the slowest GPU": pytest.approx(1575 / 1600 - 1, abs=0.005),
    }


def test_a_trial_tells_the_mean_power_to_a_tenth_of_a_watt():
    host = Host(lambda _clock: 0.5, lambda _clock: 700.5, noise=0, gpus=("GPU0", "GPU1"))
    host.slow = ("GPU1", 0.9)
    made = bench(host)
    assert made.measure((), made.cases).about["watts"] == 332.7


def test_a_rung_that_is_a_little_too_slow_is_not_judged_by_one_trial():
    made = bench(Host(lambda clock: 0.4 + 0.6 * (clock / 1980) ** 2, lambda clock: 700 * min(1.0, clock / 1640)))
    assert made.measure((("locked_clocks", 1575),), made.cases).counts
    found = study.tune(made, 36000.0)
    assert (("locked_clocks", 1575),) not in found.dropped
    assert found.setting == (("locked_clocks", 1770),)


def test_a_tuning_finds_the_least_energy_within_the_slowdown():
    made = bench(Host(lambda clock: 0.4 + 0.6 * (clock / 1980) ** 2, lambda clock: 700 * min(1.0, clock / 1560)))
    found = study.tune(made, 36000.0)
    assert found.accepted and found.setting == (("locked_clocks", 1575),)
    wished = {H200: "1575MHz"}
    assert made.proposal(found.setting) == {
        "checks": {"gpu-sm-clock-unwanted": {"accept": {"by_model": wished}, "set": wished}}
    }


MEMORY = (lambda clock: 60 + clock / 20, lambda clock: 4300 * min(1.0, clock / 1100))
"""Reading memory needs few cores: it is as fast at 1100 MHz as at 1980."""


@pytest.mark.parametrize(("work", "clock"), [("compute", 1770), ("memory", 1185)])
def test_the_work_that_the_rung_is_for_decides_and_the_other_is_shown(work, clock):
    host = Host(
        lambda clock: 0.4 + 0.6 * (clock / 1980) ** 2, lambda clock: 700 * min(1.0, clock / 1640), memory=MEMORY
    )
    made = bench(host, wanted=GpuRequest(allow_gpu_settings=True, work=work))
    found = study.tune(made, 36000.0)
    assert found.setting == (("locked_clocks", clock),)
    (accepted,) = [each for each in found.confirmations if not each.refused and each.setting == found.setting]
    ratios = {each.case.id: each.ratio for each in accepted.cases}
    assert ratios["energy"] > 0.05 and ratios["memory_energy"] > 0.03
    shown = {each.case.id for each in accepted.cases if not (each.case.judged or each.case.objective)}
    other = {"compute": {"memory_energy", "memory of the slowest GPU"}, "memory": {"energy", "bf16 of the slowest GPU"}}
    assert shown == other[work]
    assert (ratios["bf16 of the slowest GPU"] < -0.2) == (work == "memory"), "shown, and no reason to refuse"


def test_each_load_is_measured_only_where_a_case_asks_for_it():
    host = Host(lambda _clock: 1.0, lambda _clock: 700.0, memory=MEMORY)
    made = bench(host)
    made.measure((), made.cases)
    made.measure((), made.cases[:2])
    assert [item["options"]["loads"] for item in host.items] == [["products", "memory"]] * 2 + [["products"]]
    assert len(bench().cases) == 2, "a host that tells nothing of memory has no such cases"


def test_where_lower_clocks_save_nothing_the_default_stays():
    found = study.tune(bench(Host(lambda _clock: 1.0, lambda _clock: 700.0)), 36000.0)
    assert found.state == study.NOTHING and found.setting == ()


def test_only_the_lock_of_the_rung_disturbs_nothing():
    host = Host(lambda _clock: 1.0, lambda _clock: 700.0)
    made, rung = bench(host), (("locked_clocks", 1575),)
    host.held = "applications_clocks_setting"
    assert "held down" in made.measure((), made.cases).disturbed, (
        "somebody else's lock: there is no default to compare with"
    )
    assert made.measure(rung, made.cases).counts
    host.held = "applications_clocks_setting+hw_power_brake_slowdown"
    assert "hw_power_brake_slowdown" in made.measure(rung, made.cases).disturbed
    host.held, host.users = "applications_clocks_setting", "process 71 (python3)"
    assert "also used by process 71" in made.measure(rung, made.cases).disturbed
