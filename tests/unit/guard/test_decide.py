"""Who is to blame, and who is not: the decision over facts."""

import json

import pytest

from nodetune.api.model import Finding
from nodetune.config import overlay, profile
from nodetune.guard.deploy import policy
from nodetune.guard.node import decide, gating_checks, gpu_index
from nodetune.guard.node.invocation import InconclusiveError, Job

POLICY = policy.make(profile.resolve(profile.named(["training"])), "n01")
CHECKS = POLICY["checks"]
GPUS = {"0000:01:00.0": "GPU0", "0000:02:00.0": "GPU1", "0000:03:00.0": "GPU2"}


def job(gpus="0", **environment):
    given = {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": gpus, **environment}
    return Job({name: value for name, value in given.items() if value is not None})


def each(values):
    """A fact of each GPU from values; what is a fact already stays one."""
    facts = [one if isinstance(one, dict) and set(one) <= {"value", "unread"} else {"value": one} for one in values]
    return {"each": {f"GPU{at}": fact for at, fact in enumerate(facts)}}


def healthy():
    """The facts of a node with three GPUs."""
    device = {"vendor": "10de", "class": "0302", "device": "2335", "driver": "nvidia"}
    return {
        "gpu.count": {"value": 3},
        "gpu.nvml_status": {"value": "ok"},
        "gpu.minor_number": each([0, 1, 2]),
        "gpu.bdf": each(list(GPUS)),
        "gpu.access": each(["ok"] * 3),
        "gpu.recovery_action": each(["none"] * 3),
        "gpu.sram_threshold_exceeded": each([False] * 3),
        "gpu.remapped_rows": each([{"failure": False}] * 3),
        "gpu.excluded": {"value": []},
        "gpu.hidden": {"value": []},
        "pci.gpus": {"value": list(GPUS)},
        "pci.devices": {"value": dict.fromkeys(GPUS, device)},
        "modules.loaded": {"value": ["nvidia"]},
        "host.container": {"value": False},
        "host.virtual": {"value": False},
        "guard.hardware": {"value": {"machine": "this", "gpus": 0, "adapters": 0}},
    }


def decided(changes=None, failed=None, waivers=None, checks=CHECKS, listed=(), **of_job):
    facts = {**healthy(), **(changes or {})}
    facts = {name: fact for name, fact in facts.items() if fact is not None}
    host = gating_checks.host_facts(facts, failed or {})
    found = gating_checks.findings(checks, host, failed or {})
    return decide.decide(found, checks, host, job(**of_job), waivers or {}, listed)


LOST = {"unread": "NVML: GPU is lost"}


WRONG = {
    "gpu-lost": [0, True, ["ok"], {"at_least": 1}, {"one_of": [1, 2]}, {"where": {"x": 1}}],
    "gpu-row-remap-failed": [{"at_most": "0"}, {"unheard_of": 1}, {"within": [1]}],
}


@pytest.mark.parametrize(("name", "accept"), [(name, each) for name, every in WRONG.items() for each in every])
def test_a_wrong_type_of_accepted_value_is_refused_and_holds_nobody(name, accept):
    checks = [{**check, "accept": accept} if check["id"] == name else check for check in CHECKS]
    with pytest.raises(InconclusiveError, match=f"the policy's {name}.* accept.*: install the guard again"):
        decided(checks=checks)


def test_what_is_installed_from_any_profile_has_the_right_types():
    checks_of = (profile.resolve(profile.named([name])).checks for name in overlay.shipped_names())
    wanted = [check for checks in checks_of for check in checks if check.accept is not None]
    assert wanted
    for check in wanted:
        gating_checks.findings([json.loads(json.dumps(gating_checks.entry(check)))], gating_checks.host_facts({}, {}))


def lost(*gpus):
    """The facts of a node of which these GPUs are lost: they tell nothing, not even their number."""
    changes = {
        name: each([LOST if at in gpus else one for at, one in enumerate(healthy()[name]["each"].values())])
        for name in ("gpu.minor_number", "gpu.bdf", "gpu.recovery_action", "gpu.remapped_rows")
    }
    return {**changes, "gpu.access": each(["GPU is lost" if at in gpus else "ok" for at in range(3)])}


def test_a_healthy_node_passes_with_all_its_gpus():
    found = decided()
    assert (found.verdict, found.healthy) == ("pass", (0, 1, 2))


def test_a_fault_of_the_jobs_gpu_is_blamed_and_named():
    found = decided({"gpu.recovery_action": each(["none", "reset the GPU", "none"])}, gpus="1")
    assert found.verdict == "fail"
    assert found.reason == "nodetune: gpu-recovery-needed: GPU1 0000:02:00.0: reset the GPU"


def test_a_fault_of_a_peer_is_told_and_does_not_count():
    found = decided({"gpu.recovery_action": each(["none", "reset the GPU", "none"])}, gpus="0,2")
    assert found.verdict == "pass"
    assert [finding.check for finding in found.peers] == ["gpu-recovery-needed"]
    assert found.healthy == (0, 2), "the next job of the other GPU looks again"


DUE = {"gpu.recovery_action": each(["none", "drain and reset the GPU", "none"])}
PROCESS = {"pid": 7, "used_memory": 1, "name": "python3", "uid": 1000}


def running(*lists):
    """Facts about programs on the GPUs: those that use them directly. MPS has none."""
    mps = each([{"value": []}] * 3)
    return {"gpu.compute_running_processes": each(list(lists)), "gpu.mps_compute_running_processes": mps}


def test_a_gpu_due_for_a_reset_holds_its_jobs_on_an_idle_node():
    found = decided({**DUE, **running([], [], [])}, gpus="1")
    said = "nodetune: gpu-recovery-needed: GPU1 0000:02:00.0: drain and reset the GPU, which no program uses now"
    assert (found.verdict, found.reason) == ("fail", said)
    assert decided({**DUE, **running([], [], [])}, gpus="0").verdict == "pass"


@pytest.mark.parametrize("at", [0, 1])
def test_a_gpu_due_for_a_reset_waits_for_programs_of_the_node(at):
    lists = [[PROCESS] if gpu == at else [] for gpu in range(3)]
    assert decided({**DUE, **running(*lists)}, gpus="1").verdict == "pass"


@pytest.mark.parametrize(("at", "gpus", "verdict"), [(0, "1", "fail"), (1, "1", "pass"), (0, "0", "pass")])
def test_from_hopper_on_only_programs_of_the_gpu_itself_count(at, gpus, verdict):
    lists = [[PROCESS] if gpu == at else [] for gpu in range(3)]
    changes = {**DUE, **running(*lists), "gpu.architecture": each(["hopper"] * 3)}
    assert decided(changes, gpus=gpus).verdict == verdict


def test_programs_that_cannot_be_read_hold_no_job():
    found = decided({**DUE, **running([], {"unread": "NVML: Insufficient Permissions"}, [])}, gpus="1")
    assert (found.verdict, found.unknown) == ("pass", ())
    assert decided(DUE, gpus="1").verdict == "pass", "a policy of an earlier version does not have them read"


def test_gpus_are_counted_as_gres_conf_lists_their_device_files():
    changes = {"gpu.minor_number": each([2, 1, 0]), "gpu.recovery_action": each(["reset the GPU", "none", "none"])}
    assert decided(changes, gpus="0", listed=(0, 1, 2)).verdict == "pass"
    assert decided(changes, gpus="2", listed=(0, 1, 2)).verdict == "fail"
    assert decided(changes, gpus="0", listed=(2, 1)).verdict == "fail"
    assert decided(changes, gpus="1", listed=(2, 1)).verdict == "pass"
    assert decided(changes, gpus="2", listed=(2, 1)).verdict == "inconclusive", "it lists two, and Slurm gives a third"


def test_gpus_that_slurm_detects_are_counted_in_bus_order():
    changes = {"gpu.minor_number": each([2, 1, 0]), "gpu.recovery_action": each(["reset the GPU", "none", "none"])}
    assert decided(changes, gpus="0").verdict == "fail"
    assert decided(changes, gpus="2").verdict == "pass"


def test_a_gpu_that_another_driver_has_is_not_counted():
    devices = healthy()["pci.devices"]["value"]
    first = "0000:00:05.0"
    changes = {
        "pci.gpus": {"value": [first, *GPUS]},
        "pci.devices": {"value": {**devices, first: {**devices["0000:01:00.0"], "driver": "vfio-pci"}}},
        "gpu.recovery_action": each(["reset the GPU", "none", "none"]),
    }
    assert decided(changes, gpus="0").verdict == "fail"
    assert decided(changes, gpus="1").verdict == "pass"


def test_a_lost_gpu_counts_only_if_the_jobs_number_is_missing():
    assert decided(lost(1), gpus="1").reason == "nodetune: gpu-lost: GPU1 0000:02:00.0: GPU is lost"
    assert decided(lost(1), gpus="0,2").verdict == "pass"
    assert decided(lost(0, 1), gpus="1").verdict == "fail"


def test_an_unread_fact_of_the_jobs_gpu_is_no_pass():
    changes = {"gpu.recovery_action": each([{"unread": "NVML: timeout"}, "reset the GPU", "none"])}
    found = decided(changes, gpus="0")
    assert found.verdict == "inconclusive"
    assert "gpu.recovery_action of GPU0: NVML: timeout" in found.reason


def test_an_unread_fact_of_another_gpu_does_not_matter():
    changes = {"gpu.recovery_action": each(["none", {"unread": "NVML: timeout"}, "none"])}
    assert decided(changes, gpus="0").verdict == "pass"
    assert decided(changes, gpus="1").verdict == "inconclusive"


@pytest.mark.parametrize("kind", ["hang", "stuck", "crash"])
def test_an_nvml_that_does_not_come_back_is_a_finding_of_its_own(kind):
    facts = {name: None for name in healthy() if name.startswith("gpu.")}
    found = decided(facts, {"gpu": (kind, "did not return within 3.0 s in nvmlInit")})
    assert found.reason == "nodetune: nvml-not-answering: did not return within 3.0 s in nvmlInit"


@pytest.mark.parametrize("kind", ["slow", "busy", "fault"])
def test_a_fault_of_the_reader_itself_blinds_and_blames_nobody(kind):
    facts = {name: None for name in healthy() if name.startswith("gpu.")}
    found = decided(facts, {"gpu": (kind, "its time was over in pynvml")})
    assert (found.verdict, found.blamed) == ("inconclusive", ())
    assert "its time was over in pynvml" in found.reason


def test_an_nvml_version_mismatch_is_a_fault_of_the_node():
    words = "the NVML library and the kernel module are of different versions"
    facts = {name: None for name in healthy() if name.startswith("gpu.")}
    found = decided({**facts, "gpu.nvml_status": {"value": words}, "gpu.count": {"unread": f"NVML: {words}"}})
    assert found.reason == f"nodetune: nvml-not-answering: {words}"


def test_nouveau_is_a_fault_of_the_node_for_jobs_with_gpus():
    device = {"vendor": "10de", "class": "0302", "device": "1", "driver": "nouveau"}
    devices = {"value": dict.fromkeys(GPUS, device)}
    gone = {name: {"absent": "no driver"} for name in healthy() if name.startswith("gpu.")}
    found = decided({**gone, "modules.loaded": {"value": ["nouveau"]}, "pci.devices": devices})
    assert found.reason == f"nodetune: nouveau-loaded: {', '.join(GPUS)}"


def test_a_gpu_that_nvml_does_not_know_leaves_its_job_unjudged():
    found = decided(gpus="0,3")
    assert (found.verdict, found.reason) == (
        "inconclusive",
        "Slurm assigned GPU 3 to the job, which NVML does not report",
    )


def test_gpus_of_slurm_on_a_host_that_shows_none_are_unjudged():
    gone = {name: {"absent": "none"} for name in healthy() if name.startswith("gpu.")}
    found = decided({**gone, "pci.gpus": {"value": []}})
    assert found.verdict == "inconclusive"
    assert "no check found an NVIDIA GPU" in found.reason


def test_a_job_with_mig_devices_is_blamed_for_no_single_gpu():
    changes = {"gpu.recovery_action": each(["none", "reset the GPU", "none"])}
    found = decided(changes, gpus="1", CUDA_VISIBLE_DEVICES="MIG-8a1f")
    assert found.verdict == "pass"
    assert [finding.check for finding in found.peers] == ["gpu-recovery-needed"]


def test_a_waived_finding_does_not_count_and_says_who_decided_so():
    changes = {"gpu.recovery_action": each(["reset the GPU", "none", "none"])}
    found = decided(changes, waivers={"gpu-recovery-needed": "known (ops, until 2999-01-01)"})
    assert found.verdict == "pass"
    assert found.waived[0].reason == "known (ops, until 2999-01-01)"


def test_a_policy_may_accept_what_the_check_does_not():
    lenient = [
        {**check, "accept": {"one_of": ["none", "reset the GPU"]}} if check["id"] == "gpu-recovery-needed" else check
        for check in CHECKS
    ]
    changes = {"gpu.recovery_action": each(["reset the GPU", "none", "none"])}
    assert decided(changes, checks=lenient).verdict == "pass"


def test_a_reason_is_one_short_plain_line():
    words = "bad \n\x1b[31m news · ✓ " + "x" * 500
    reason = decide.log.reason([Finding("gpu-lost", "fail", "critical", observed=words)], ())
    assert reason.startswith("nodetune: gpu-lost: bad ")
    assert len(reason) <= 200
    assert reason.isascii() and reason.isprintable()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0", (0,)), ("0,2-3", (0, 2, 3)), ("3,1", (1, 3)), ("", ()), ("gpu:1", ()), ("5-2", ()), ("0-99999999", ())],
)
def test_the_gpus_of_a_job_are_read_from_slurms_list(text, numbers):
    assert job(text).gpus == numbers


@pytest.mark.parametrize("number", ["", "../7", "7\n", "-1", "\u0667", "7" * 30])
def test_a_job_number_that_is_none_is_not_used_in_a_path(number):
    assert Job({"SLURM_JOB_ID": number}).id == ""


@pytest.mark.parametrize(
    ("lines", "numbers"),
    [
        ("Name=gpu File=/dev/nvidia[4-5]", (4, 5)),
        ("Name=gpu Type=a File=/dev/nvidia5\nName=gpu Type=b File=/dev/nvidia2,/dev/nvidia[0-1,7]", (5, 2, 0, 1, 7)),
        ("NodeName=n[02-09] Name=gpu File=/dev/nvidia3\nNodeName=n01 Name=gpu File=/dev/nvidia1", (1,)),
        ("AutoDetect=off\nName=gpu File=/dev/nvidia1\nName=mps Count=100", (1,)),
        ("AutoDetect=nvml\nName=gpu File=/dev/nvidia1", ()),
        ("Name=gpu Count=8", ()),
        ("Name=gpu File=/dev/nvidia[x-", ()),
    ],
)
def test_gres_conf_next_to_slurm_conf_says_how_slurm_counts(tmp_path, lines, numbers):
    (tmp_path / "gres.conf").write_text(f"{lines}\n")
    assert gpu_index.listed(str(tmp_path / "slurm.conf"), "n01") == numbers


def test_without_a_gres_conf_nothing_is_listed(tmp_path):
    assert gpu_index.listed(str(tmp_path / "slurm.conf"), "n01") == ()


def test_a_gres_conf_that_cannot_be_read_is_not_guessed_at(tmp_path):
    (tmp_path / "gres.conf").mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        gpu_index.listed(str(tmp_path / "slurm.conf"), "n01")
