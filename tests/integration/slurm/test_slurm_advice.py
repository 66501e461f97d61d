"""The lines that nodetune prints for the GPUs of a real Slurm, written as printed: what the next audit says."""

import re

import lab
import pytest

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.facts import document
from nodetune.probe import processes, slurm
from nodetune.remediation import scheduler_diff, slurm_diff

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
]
CHECKS = {check.id: check for check in checks.load_all()}
STEPS = CHECKS["gpus-not-all-offered"].remedy.steps
GPUS = {
    "gpu.count": {"value": 2},
    "pci.gpus": {"value": ["0000:00:00.0", "0000:01:00.0"]},
    "gpu.bdf": {"each": {f"GPU{number}": {"value": f"0000:0{number}:00.0"} for number in range(2)}},
    "gpu.minor_number": {"each": {f"GPU{number}": {"value": number} for number in range(2)}},
    "pci.devices": {"value": {f"0000:0{number}:00.0": {"numa_node": number} for number in range(2)}},
    "numa.nodes": {"value": {str(number): {"cpu_count": 2, "cpus": "0"} for number in range(2)}},
    "numa.node_count": {"value": 2},
    "cpu.cores": {"value": 4},
    "cpu.sockets": {"value": 2},
    "cpu.count": {"value": 4},
}
"""What this machine lacks. Slurm's own facts are real."""


@pytest.fixture(scope="module")
def cluster(place):
    with lab.Cluster(place, gpus=2) as started:
        yield started


def facts(cluster):
    processes._SEEN.clear()  # a probe looks once
    found = dict(slurm.collect(["registered"], lambda _text: None))
    return document.from_data({"host": "n01", "facts": {**GPUS, **{f"slurm.{key}": found[key] for key in found}}})


def judged(cluster, check="gpus-not-all-offered"):
    return evaluate.judge(CHECKS[check], facts(cluster))


def written(cluster, gres_types="GresTypes=gpu", gres="", lines=()):
    """Write the three places and start Slurm again. The devices of the lab lie elsewhere than in /dev."""
    text = re.sub(r"^GresTypes=.*\n", "", cluster.conf.read_text(), flags=re.MULTILINE)
    text = re.sub(r" Gres=\S+", f" {gres}", text)
    cluster.conf.write_text(text.replace("NodeName=", f"{gres_types}\nNodeName=", 1))
    placed = [line.replace("/dev/nvidia", f"{cluster.folder}/dev/nvidia") for line in lines]
    (cluster.folder / "etc" / "gres.conf").write_text("".join(f"{line}\n" for line in placed))
    cluster.restart()


def printed(pattern):
    """What the steps print, with the names of this node in place of the words in capitals."""
    found = re.search(pattern, STEPS)[0]
    return found.replace("TYPE", "h200").replace("COUNT", "2").replace("NODE", "n01").replace("[0-7]", "[0-1]")


def test_gres_without_its_kind_is_named_and_the_printed_lines_help(cluster):
    gres = printed(r"Gres=\S+")
    written(cluster, "", gres, ["Name=gpu Type=h200 File=/dev/nvidia[0-1]"])
    found = judged(cluster)
    assert (found.status, found.observed, found.reason) == ("fail", "0", "slurm.conf has no GresTypes=gpu")
    written(cluster, printed(r"GresTypes=\S+"), gres, [printed(r"NodeName=NODE AutoDetect=off .*?\]")])
    cluster.wait_until(lambda: cluster.state("n01") == "IDLE", "n01 is idle")
    found = judged(cluster)
    assert (found.status, found.reason) == ("pass", "")
    assert cluster.run("srun", "--gres=gpu:h200:2", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1\n"


def test_a_slurmd_without_nvml_is_named_and_the_printed_diff_helps(cluster):
    assert facts(cluster).facts["slurm.detects"].value == []
    written(cluster, gres="Gres=gpu:h200:2", lines=["AutoDetect=nvml"])
    found = judged(cluster)
    assert (found.status, found.observed) == ("fail", "slurmd finds 0 of 2: Slurm drained the node")
    assert found.reason == "gres.conf has AutoDetect=nvml, and this slurmd has no gpu_nvml.so"
    assert judged(cluster, "gpu-cores-unknown").observed.startswith("AutoDetect=nvml, for which this slurmd has no")
    proposed = dict(scheduler_diff.hunks(facts(cluster)))[f"{cluster.folder}/etc/gres.conf"]
    assert slurm_diff.NO_NVML in proposed
    added = [line[1:].replace(slurm_diff.HOSTS, "n01") for line in proposed if line.startswith("+")]
    written(cluster, gres="Gres=gpu:h200:2", lines=["AutoDetect=nvml", *added])
    if "DRAIN" in cluster.state("n01"):
        cluster.run(*printed(r"scontrol update .*").split())
    cluster.wait_until(lambda: cluster.state("n01") == "IDLE", "n01 is idle")
    found = judged(cluster)
    assert (found.status, found.reason) == ("pass", "")
    assert judged(cluster, "gpu-cores-unknown").status == "pass"
    assert "gpu:h200:2" in cluster.run("scontrol", "show", "node", "n01")


def test_no_answer_of_slurmctld_leaves_the_text_to_judge(cluster):
    written(cluster, gres="Gres=gpu:h200:2", lines=["Name=gpu Type=h200 File=/dev/nvidia[0-1]"])
    cluster.stop_controller()
    found = facts(cluster)
    assert "scontrol" in found.facts["slurm.registered"].reason
    found = judged(cluster)
    assert (found.status, found.reason) == ("pass", "")


PROLOG = "Prolog=/bin/true"
SETTINGS = {
    "prolog-failure-holds-job": (PROLOG, r"nohold_on_prolog_fail", "SchedulerParameters={}"),
    "prolog-may-hang": (PROLOG, r"PrologEpilogTimeout=\d+", "{}"),
    "prolog-runs-late": (PROLOG, r"PrologFlags=\w+", "{}"),
    "health-check-never-runs": (
        "",
        r"HealthCheckProgram=PATH, HealthCheckInterval=\d+, HealthCheckNodeState=[A-Z,]+[A-Z]",
        "{}",
    ),
    "cpus-per-gpu-too-many": ("DefCpuPerGPU=100", r"DefCpuPerGPU", "{}=2"),
}
"""Check → the line of slurm.conf that plants its fault, what its steps print, and the line that this becomes."""


@pytest.mark.parametrize("check", SETTINGS)
def test_a_printed_setting_is_in_force_after_scontrol_reconfigure(cluster, check):
    plant, pattern, line = SETTINGS[check]
    steps = CHECKS[check].remedy.steps
    plain = re.sub(
        r"^(Prolog|HealthCheck|SchedulerParameters|DefCpu).*\n", "", cluster.conf.read_text(), flags=re.MULTILINE
    )
    cluster.conf.write_text(plain)
    written(cluster, gres="Gres=gpu:h200:2", lines=["AutoDetect=off", "Name=gpu Type=h200 File=/dev/nvidia[0-1]"])
    plain = cluster.conf.read_text()
    cluster.conf.write_text(f"{plant}\n{plain}")
    cluster.restart()
    assert judged(cluster, check).status == "fail"
    found = re.search(pattern, steps)[0].replace("PATH", "/bin/true")
    lines = [line.format(each) for each in found.split(", ")]
    kept = plant if line.partition("=")[0].format(found) != plant.partition("=")[0] else ""
    cluster.conf.write_text("\n".join([kept, *lines, plain]))
    cluster.run(*re.search(r"scontrol reconfigure", steps)[0].split())
    assert judged(cluster, check).status == "pass"
    name, _, value = lines[0].partition("=")
    shown = rf"^{name}\s+= .*{value}" if name != "DefCpuPerGPU" else rf"JobDefaults.*{name}={value}"
    cluster.wait_until(
        lambda: re.search(shown, cluster.run("scontrol", "show", "config"), re.IGNORECASE | re.MULTILINE),
        f"{name} is in force",
    )
