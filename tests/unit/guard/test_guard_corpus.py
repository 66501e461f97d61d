"""A thousand guard runs over recorded machines, in part or in whole, with faults that gate and with what does not.

The guard holds a job only for a check that `expected.yml` names for the machine, or for a planted fault of the job's GPU.
"""

import random
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from nodetune.api.model import Absent, Each, HostFacts, Unread, Value
from nodetune.config import profile
from nodetune.facts import document
from nodetune.guard.deploy import policy
from nodetune.guard.node import decide, gating_checks
from nodetune.guard.node.invocation import Job

CORPUS = Path(__file__).parents[2] / "data" / "corpus"
EXPECTED = yaml.safe_load((CORPUS / "expected.yml").read_text())
CHECKS = policy.make(profile.resolve(profile.named(["training"])), "n01")["checks"]
READ = {name for check in CHECKS for name in check["facts"]} | {"gpu.minor_number", "gpu.bdf"}
RUNS = 5
"""Of each kind on each machine: five kinds on forty machines."""

REMAPPED = {"correctable": 0, "uncorrectable": 1, "pending": True, "failure": False}
DUE = "drain and reset the GPU"
PROGRAM = {"pid": 7, "used_memory": 1, "name": "python3", "uid": 1000}
LOST = Unread("NVML: GPU is lost")

HEALTHY = {
    "gpu.access": "ok",
    "gpu.recovery_action": "none",
    "gpu.sram_threshold_exceeded": False,
    "gpu.remapped_rows": REMAPPED,
    "gpu.compute_running_processes": [],
    "gpu.mps_compute_running_processes": [],
}
FAULTS = {
    "gpu-lost": {"gpu.access": "GPU is lost"},
    "gpu-recovery-needed": {"gpu.recovery_action": "reset the GPU"},
    "gpu-row-remap-failed": {"gpu.remapped_rows": {**REMAPPED, "failure": True}},
    "gpu-sram-threshold-exceeded": {"gpu.sram_threshold_exceeded": True},
}
HARMLESS = (
    {"gpu.recovery_action": DUE, "gpu.compute_running_processes": [PROGRAM]},
    {"gpu.recovery_action": DUE, "gpu.mps_compute_running_processes": [PROGRAM]},
    {"gpu.recovery_action": DUE, "gpu.compute_running_processes": Unread("NVML: Insufficient Permissions")},
    {"gpu.recovery_action": DUE, "gpu.compute_running_processes": Absent("not supported")},
    {"gpu.fabric": {"state": "in_progress", "status": "success"}},
    {"gpu.fabric": {"state": "completed", "status": "Unknown Error"}},
    {"gpu.nvlink_state": {"active": [], "inactive": [0, 1]}},
    {"gpu.mig_mode": "enabled"},
    {"gpu.unrepairable_memory": True},
)
LOGGED = {"xid.events": Value([{"bdf": "0000:00:00.0", "xid": xid, "time": 1.0, "text": ""} for xid in (79, 95, 48)])}
NODE = {**LOGGED, "mounts.points": Value({"/": {"type": "ext4", "options": ["rw"], "super_options": ["ro"]}})}
"""Findings of the node that do not gate."""


def recorded(machine):
    return document.load(CORPUS / f"{machine}.json")


def gpus(host):
    return sorted(
        {gpu for fact in host.facts.values() if isinstance(fact, Each) for gpu in fact.of if gpu[:3] == "GPU"}
    )


def completed(host):
    """The host with healthy facts for all that its recording is silent about."""
    names = gpus(host) or ["GPU0", "GPU1"]
    each = {fact: Each(dict.fromkeys(names, Value(value))) for fact, value in HEALTHY.items()}
    bus = {gpu: f"0000:{at + 16:02x}:00.0" for at, gpu in enumerate(names)}
    device = {"vendor": "10de", "class": "0302", "device": "2335", "driver": "nvidia", "virtual_function": False}
    made = {
        **each,
        "gpu.nvml_status": Value("ok"),
        "gpu.minor_number": Each({gpu: Value(at) for at, gpu in enumerate(names)}),
        "gpu.excluded": Value([]),
        "gpu.hidden": Value([]),
        "host.container": Value(False),
        "host.virtual": Value(False),
        "guard.hardware": Value({"machine": "this", "gpus": len(names), "adapters": 0}),
    }
    listed = {
        "gpu.count": Value(len(names)),
        "gpu.bdf": Each({gpu: Value(bdf) for gpu, bdf in bus.items()}),
        "pci.gpus": Value(list(bus.values())),
        "pci.devices": Value(dict.fromkeys(bus.values(), device)),
    }
    return HostFacts(host.host, {**made, **host.facts, **listed}, host.about)


def planted(host, gpu, changes):
    facts = dict(host.facts)
    for name, value in changes.items():
        fact = facts.get(name)
        of = dict(fact.of) if isinstance(fact, Each) else {}
        facts[name] = Each({**of, gpu: value if isinstance(value, Absent | Unread) else Value(value)})
    return HostFacts(host.host, {**facts, **NODE}, host.about)


def torn(host, chance):
    """The host with a part of what the guard reads gone: not collected, or unread for one of the GPUs."""
    facts = dict(host.facts)
    for name in chance.sample(sorted(READ), 3):
        fact = facts.pop(name, None)
        if isinstance(fact, Each) and fact.of and chance.random() < 0.7:
            facts[name] = Each({**fact.of, chance.choice(sorted(fact.of)): LOST})
    return HostFacts(host.host, facts, host.about)


def job_on(host, chance, with_gpu=None):
    places = sorted(decide.Cards(host, Job({})).known.values()) or [0]
    held = {*chance.sample(places, chance.randint(1, len(places))), *([] if with_gpu is None else [with_gpu])}
    mig = {"CUDA_VISIBLE_DEVICES": "MIG-8a1f"} if with_gpu is None and chance.random() < 0.1 else {}
    return Job({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": ",".join(map(str, sorted(held))), **mig})


def decided(host, job):
    found = gating_checks.findings(CHECKS, host, {})
    return decide.decide(found, CHECKS, host, job, {})


def held_for(decision):
    return {finding.check for finding in decision.blamed} if decision.verdict == "fail" else set()


def surplus(machine, decision, planted_check=""):
    """The checks that hold the job and that the machine's entry does not name."""
    says = EXPECTED[machine]
    right = [*says["expected"], *says.get("allowed", {}), planted_check]
    return {check for check in held_for(decision) if not any(fnmatchcase(check, pattern) for pattern in right)}


def runs(machine):
    """Each run on a machine: (the decision, the check whose fault was planted on a GPU of the job)."""
    chance, bare = random.Random(machine), recorded(machine)
    whole = completed(bare)
    for _ in range(RUNS):
        yield decided(bare, job_on(bare, chance)), ""
        yield decided(torn(whole, chance), job_on(whole, chance)), ""
        gpu = chance.choice(sorted(whole.facts["gpu.bdf"].of))
        quiet = planted(whole, gpu, chance.choice(HARMLESS))
        yield decided(quiet, job_on(quiet, chance)), ""
        place = decide.Cards(whole, Job({})).known[gpu]
        check = chance.choice(sorted(FAULTS))
        broken = planted(whole, gpu, FAULTS[check])
        yield decided(broken, job_on(broken, chance, with_gpu=place)), check
        others = set(decide.Cards(broken, Job({})).known.values()) - {place}
        elsewhere = Job({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": ",".join(map(str, others))})
        yield decided(broken, elsewhere), ""


def test_the_runs_are_a_thousand():
    assert len(EXPECTED) * RUNS * 5 >= 1000


@pytest.mark.parametrize("machine", EXPECTED)
def test_no_job_is_held_but_for_a_fault_that_is_named(machine):
    wrong = [surplus(machine, decision, check) for decision, check in runs(machine)]
    assert [each for each in wrong if each] == []


@pytest.mark.parametrize("machine", EXPECTED)
def test_a_planted_fault_of_the_jobs_gpu_holds_it(machine):
    missed = [check for decision, check in runs(machine) if check and check not in held_for(decision)]
    assert missed == []


def test_a_completed_healthy_machine_is_judged_and_passes():
    verdicts = {}
    for machine, says in EXPECTED.items():
        if says["healthy"]:
            host = completed(recorded(machine))
            verdicts[machine] = decided(host, job_on(host, random.Random(1), with_gpu=0)).verdict
    assert len(verdicts) > 20
    assert set(verdicts.values()) == {"pass"}
