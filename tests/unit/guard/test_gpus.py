"""The whole program on a node with eight GPUs, whose NVML misbehaves as it is told."""

import ctypes
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodetune.guard.node import read, records
from tests.unit.guard import install
from tests.unit.guard.test_entry import in_namespace, needs_mount

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs prologs and epilogs as root")

FORBIDDEN = ("click", "yaml", "rich", "jinja2", "paramiko", "ansible", "ansible_runner")
FORBIDDEN_OWN = ("workflow", "transport", "inventory", "apply", "profile", "rollout", "playbook", "data", "located")
HANG = "hang=nvmlDeviceGetTemperature:forever"
SHORT = {"seconds": {"total": 5, "step": 0.5, "stuck": 20}}


def until(condition):
    deadline = time.monotonic() + install.LATEST
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pass_is_reused_for_the_next_job(node):
    ended = node.call()
    assert ended.code == 0
    assert ended.said.startswith("nodetune: pass (")
    assert node.call(gpus="5").said == ""
    assert node.read("heartbeat").split()[1:] == ["7", "pass", "again"]
    assert node.inconclusive() == 0


def test_a_lost_gpu_holds_its_jobs_and_no_others(node):
    node.control("lost@1=1")
    ended = node.call()
    assert ended == (
        1,
        "nodetune: gpu-lost: GPU1: NVML: GPU is lost; job 7 does not run on n01; next: nodetune explain gpu-lost\n",
    )
    record = node.record()
    assert record["reason"] == "nodetune: gpu-lost: GPU1: NVML: GPU is lost"
    assert (record["job"], record["node"], record["mode"]) == ("7", "n01", "enforce")
    others = node.call(gpus="0,2", job="8")
    assert others.code == 0
    assert "of other GPUs: gpu-lost" in others.said


def test_a_failure_is_never_kept(node):
    node.control("lost@0=1")
    assert [node.call().code, node.call().code] == [1, 1]
    node.control()
    assert node.call().code == 0


def test_the_job_is_held_even_if_slurm_cannot_drain(node):
    node.write_policy(mode="enforce", act="drain", scontrol="/nonexistent/scontrol")
    node.control("lost@0=1")
    ended = node.call()
    assert ended.code == 1
    assert ended.said.count("\n") == 1
    assert node.record()["checks"][0] == "gpu-lost"


def test_a_job_runs_behind_a_stuck_lock_even_without_timeout(node):
    node.write_policy(mode="enforce", seconds={"total": 1, "step": 1, "stuck": 20})
    node.prolog.write_text(node.prolog.read_text().replace("/usr/bin/timeout", "/nonexistent/timeout"))
    node.run_folder.mkdir()
    with (node.run_folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = node.call()
    assert ended.code == 0
    assert "inconclusive: another run on this node is still reading" in ended.said


def test_in_observe_mode_no_job_is_held_and_nothing_is_on_record(node):
    node.write_policy(mode="observe")
    node.control("lost@0=1")
    ended = node.call()
    assert ended.code == 0
    assert ended.said.endswith("; the job runs: the mode is observe\n")
    assert os.listdir(node.run_folder / "failed") == []
    assert node.read("heartbeat").split(None, 2)[2].strip() == "fail: gpu-lost: GPU0: NVML: GPU is lost"


def test_a_kill_switch_that_only_the_policy_names_works_too(node):
    node.control("lost@0=1")
    (node.folder / "off.policy").touch()
    assert "switched off by" in node.call().said
    assert node.call().code == 0


def test_a_job_without_gpus_does_not_touch_nvml(node):
    node.control("hang=nvmlInit:forever")
    assert node.call(gpus=None) == (0, "nodetune: pass: no check applies to this job\n")


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetTemperature", "nvmlDeviceGetHandleByIndex"])
def test_a_hanging_call_holds_the_job_and_is_named(node, call):
    node.write_policy(mode="enforce", **SHORT)
    node.control(f"hang={call}:forever")
    ended = node.call()
    assert ended.code == 1
    assert re.search(rf"nodetune: nvml-not-answering: did not return within \d\.\d s in {call}", ended.said)
    assert node.readers() == []


def in_driver(pid):
    """Whether the substitute makes a process hang: it is deaf to signals meanwhile."""
    blocked = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigBlk"))
    return int(blocked.split()[1], 16) & 1 << (signal.SIGTERM - 1)


def test_a_reader_that_gets_no_cpu_does_not_hang(node):
    node.write_policy(mode="enforce", seconds={"total": 3, "step": 0.5, "stuck": 20})
    node.control("hang=nvmlInit:0.4")
    entry = node.start()
    until(lambda: any(map(in_driver, node.readers())))
    (reader,) = node.readers()
    os.kill(reader, signal.SIGSTOP)
    said, _ = entry.communicate(timeout=install.LATEST)
    assert entry.returncode == 0
    assert "in nvmlInit, where it could work for 0." in said
    assert node.inconclusive() == 1


@needs_mount
@pytest.mark.parametrize("awake", [True, False])
def test_a_driver_that_wakes_gpus_is_slow_and_does_not_hang(node, awake):
    """Where nothing keeps them awake: with a file of a GPU under /dev that somebody holds open, or nobody."""
    node.write_policy(mode="enforce", **SHORT)
    node.control("hang=nvmlInit:forever")
    before = [
        "mount -t tmpfs none /dev",
        "mknod /dev/null c 1 3",
        "touch /dev/nvidia0",
        *(["exec 9< /dev/nvidia0"] if awake else []),
    ]
    ended = node.call(before=in_namespace(*before))
    assert ended.code == (1 if awake else 0), ended.said
    assert ("and /dev/nvidia0 had no clients" in ended.said) is not awake


def test_several_slow_calls_are_inconclusive(node):
    node.write_policy(mode="enforce", seconds={"total": 2, "step": 1, "stuck": 20})
    node.control("hang=nvmlDeviceGetTemperature:0.4")
    ended = node.call()
    assert ended.code == 0
    assert "its time was over in nvmlDeviceGetTemperature GPU" in ended.said
    assert node.inconclusive() == 1


@pytest.fixture
def earlier_reader(node, tmp_path):
    """A process called as readers are that waits in the kernel (D), as for a driver that does not come back.

    It holds the lock of the node's readers; without `lock`, or `within` a container, it is none of them.
    """
    code = """
import os, sys
sys.path.insert(0, sys.argv[3])
from nodetune.onhost import one_reader
if sys.argv[4]:
    one_reader.hold(sys.argv[4])
one_reader.call_ourselves("nodetune:gpu")
if sys.argv[2] == "D":  # posix_spawn waits for its child in the kernel, and the child for somebody to write
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 9, sys.argv[1], os.O_RDONLY, 0)])
os.open(sys.argv[1], os.O_RDONLY)
"""
    os.mkfifo(tmp_path / "pipe")
    started = []
    node.run_folder.mkdir()

    def start(state, within=(), lock=True):
        words = [node.program, node.run_folder / records.LOCK if lock else ""]
        command = [*node.enter, *within, sys.executable, "-c", code, tmp_path / "pipe", state, *words]
        started.append(subprocess.Popen(command, start_new_session=True, env=node.environment()))
        pid = started[-1].pid
        for _ in range(2 if within else 1):  # nsenter, unshare
            until(partial(install.children_of, pid))
            (pid,) = install.children_of(pid)
        until(lambda: "(nodetune:gpu) " + state in Path(f"/proc/{pid}/stat").read_text())
        inside = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("NSpid"))
        return int(inside.split()[-1])

    yield start
    for child in started:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_a_stuck_reader_is_reported_and_stays_the_only_one(node, earlier_reader):
    node.write_policy(mode="enforce", seconds={"total": 5, "step": 3, "stuck": 1})
    pid = earlier_reader("D")
    time.sleep(1.1)  # it must be older than what counts as stuck
    before = node.readers()
    ended = node.call()
    assert ended.code == 1
    assert f"nvml-not-answering: an earlier reader (process {pid}, " in ended.said
    assert node.readers() == before


def test_a_stuck_reader_is_found_behind_a_working_one(node, earlier_reader):
    node.write_policy(mode="enforce", seconds={"total": 5, "step": 3, "stuck": 1})
    earlier_reader("S")
    pid = earlier_reader("D")
    time.sleep(1.1)
    ended = node.call()
    assert ended.code == 1
    assert f"nvml-not-answering: an earlier reader (process {pid}, " in ended.said


def test_a_busy_reader_blames_nobody(node, earlier_reader):
    node.write_policy(mode="enforce", seconds={"total": 2, "step": 1, "stuck": 1})
    pid = earlier_reader("S")
    ended = node.call()
    assert ended.code == 0
    assert f"an earlier reader (process {pid}, " in ended.said
    assert node.inconclusive() == 1


CONTAINER = ("unshare", "--pid", "--fork", "--kill-child")
RUNS = [3, pytest.param(500, marks=[pytest.mark.full, pytest.mark.slow, pytest.mark.timeout(3000)])]


@pytest.mark.parametrize("runs", RUNS)
def test_readers_by_name_alone_change_no_verdict(node, earlier_reader, runs):
    """Root in containers, and root of the node without the guard's lock file, asleep and in the kernel."""
    node.write_policy(mode="enforce", seconds={"total": 40, "step": 30, "stuck": 1})
    node.write_entry(seconds=60)
    for state in "SD":
        earlier_reader(state, within=CONTAINER)
        earlier_reader(state, lock=False)
    time.sleep(1.1)  # it must be older than what counts as stuck
    for _ in range(runs):
        node.forget()
        ended = node.call()
        assert ended.code == 0, ended.said
        assert ended.said.startswith("nodetune: pass (")
    assert node.inconclusive() == 0


@pytest.fixture
def in_a_call(monkeypatch, tmp_path):
    """A reader in a call into the driver that does this once it is told to."""
    go = tmp_path / "go"
    os.mkfifo(go)

    def collect(act, names, step):
        step("nvmlInit")
        go.read_bytes()
        act()
        yield "fact", {"value": 1}

    def start(act=lambda: None):
        monkeypatch.setitem(sys.modules, "nodetune.probe.mounts", SimpleNamespace(collect=partial(collect, act)))
        started = read.start(["mounts.fact"], 60, 60, 60, SimpleNamespace(run=str(tmp_path), kept=str(tmp_path)))
        return started, go.open("wb")  # it is open once the reader has it open, too

    return start


@pytest.mark.parametrize("number", read.CRASHES)
def test_a_signal_from_outside_is_no_crash_of_the_driver(in_a_call, number):
    started, go = in_a_call()
    (reader,) = started._readers
    os.kill(reader.pid, number)
    go.close()
    found = started.finish()
    assert found.failed == {}
    assert found.facts == {"mounts.fact": {"value": 1}}


@pytest.mark.parametrize("act", [os.abort, partial(ctypes.string_at, 8)])
def test_a_true_fault_is_a_crash_of_the_driver(in_a_call, act):
    started, go = in_a_call(act)
    go.close()
    kind, why = started.finish().failed["mounts"]
    assert kind == "crash"
    assert "died in nvmlInit (signal " in why


def test_of_two_at_once_one_reads_and_both_jobs_run(node):
    node.control("hang=nvmlDeviceGetTemperature:0.05")
    both = [node.start(job="7"), node.start(job="8")]
    said = sorted(child.communicate(timeout=install.LATEST)[0] for child in both)
    assert [child.returncode for child in both] == [0, 0]
    assert said[0].startswith("nodetune: pass (")
    assert said[1] == "nodetune: pass (recent run)\n"


def test_of_two_at_once_on_a_sick_node_both_jobs_are_held(node):
    node.control("lost@0=1")
    both = [node.start(job="7"), node.start(job="8")]
    for child in both:
        child.communicate(timeout=install.LATEST)
    assert [child.returncode for child in both] == [1, 1]
    assert {node.record("7")["job"], node.record("8")["job"]} == {"7", "8"}


def test_behind_one_that_hangs_the_other_lets_its_job_run(node):
    node.write_policy(mode="enforce", seconds={"total": 10, "step": 5, "stuck": 20})  # it waits four, the first five
    node.write_entry(seconds=12)
    node.control(HANG)
    first = node.start(job="7")
    until(node.readers)
    assert node.call(job="8").code == 0
    first.communicate(timeout=install.LATEST)
    assert first.returncode == 1


def test_a_killed_program_lets_the_job_run_without_readers(node):
    node.control(HANG)
    entry = node.start()
    until(node.readers)
    (reader,) = node.readers()
    program = int(Path(f"/proc/{reader}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(program, signal.SIGKILL)
    said, _ = entry.communicate(timeout=install.LATEST)
    assert entry.returncode == 0
    assert "inconclusive: it ended with 137" in said
    until(lambda: not node.readers())


def test_the_cap_lets_no_more_nodes_fail_than_it_says(tmp_path, program, nvml, machine):
    nodes = []
    cap = {"shared": str(tmp_path / "shared"), "cap_nodes_per_hour": 2}
    for number in range(4):
        made = install.Node(tmp_path / f"n{number}", program, nvml, machine, **cap)
        made.control("lost@0=1")
        nodes.append(made)
    (tmp_path / "shared").mkdir()
    ended = [
        made.call(environment={**made.environment(), "SLURMD_NODENAME": f"n{number}"})
        for number, made in enumerate(nodes)
    ]
    assert [each.code for each in ended] == [1, 1, 0, 0]
    assert "the job runs: 2 nodes failed within an hour, but only 2 are allowed" in ended[2].said
    assert nodes[2].inconclusive() == 1
    (tmp_path / "shared" / "off").touch()
    assert "switched off by" in nodes[0].call().said


def test_the_reading_before_a_job_is_kept_for_its_epilog(node):
    node.write_policy(mode="enforce", snapshot=["gpu.ecc_uncorrected_volatile", "gpu.uuid"])
    node.call(job="7")
    node.call(job="8", gpus="3")  # by the same reading
    for job in ("7", "8"):
        facts = json.loads(node.read(f"snap/{job}.json"))["facts"]
        assert sorted(facts) == ["gpu.ecc_uncorrected_volatile", "gpu.uuid"]
        assert len(facts["gpu.uuid"]["each"]) == 8


def test_only_what_the_checks_need_is_asked_of_the_driver(node):
    code = f"""
import sys
sys.path.insert(0, {str(node.program)!r})
from types import SimpleNamespace
from nodetune.guard.node import policy, read
chosen = policy.load({str(node.policy)!r})
names = [name for check in chosen.checks for name in check["facts"]]
print(sorted(name for name in read.start(names, 20, 20, 20, SimpleNamespace(run={str(node.run_folder)!r}, kept="/nowhere")).finish().facts if name.startswith("gpu.")))
"""
    done = node.python(code)
    assert "gpu.access" in done.stdout
    assert "gpu.uuid" not in done.stdout
    assert "gpu.nvlink_state" not in done.stdout


def test_nothing_that_is_heavy_or_of_the_controller_is_imported(node):
    code = f"""
import sys
sys.path.insert(0, {str(node.program)!r})
from nodetune.guard.node import main as program
words = ["--policy", {str(node.policy)!r}, "--run", {str(node.run_folder)!r}, "--kept", {str(node.kept)!r}, "--nonce", "x"]
assert program.main(["prolog", *words]) == 1
print(*sys.modules)
"""
    node.control("lost@0=1")
    done = node.python(code)
    modules = done.stdout.splitlines()[-1].split()
    assert "nodetune.guard.node.decide" in modules, "it went the whole way"
    roots = {name.partition(".")[0] for name in modules}
    assert roots - set(sys.stdlib_module_names) <= {"__main__", "nodetune", "pynvml"}
    assert not set(FORBIDDEN) & roots
    assert not {name for name in modules if name.startswith("nodetune.") and name.split(".")[1] in FORBIDDEN_OWN}


def test_a_pass_that_counts_imports_next_to_nothing(node):
    node.call()
    code = f"""
import sys
sys.path.insert(0, {str(node.program)!r})
before = set(sys.modules)
from nodetune.guard.node import main as program
assert program.main(["prolog", "--policy", {str(node.policy)!r}, "--run", {str(node.run_folder)!r}, "--kept", {str(node.kept)!r}]) == 0
print(*sorted(set(sys.modules) - before))
"""
    done = node.python(code)
    own = {name for name in done.stdout.split() if name.startswith("nodetune")}
    assert own == {
        "nodetune",
        "nodetune.guard",
        *(f"nodetune.guard.node{part}" for part in ("", ".cache", ".invocation", ".main", ".records")),
    }
    assert not {"json", "re", "typing", "dataclasses", "pathlib", "collections"} & set(done.stdout.split())


# A bus with GPUs on it, for what only counts where there are some


def with_gpus_on_the_bus(folder):
    """A mount namespace in which eight GPUs are on the PCI bus, with NVIDIA's driver."""
    (folder / "drivers" / "nvidia").mkdir(parents=True)
    for number in range(8):
        device = folder / "devices" / f"0000:{number:02x}:00.0"
        device.mkdir(parents=True)
        for name, content in {"vendor": "0x10de", "device": "0x2335", "class": "0x030200"}.items():
            (device / name).write_text(f"{content}\n")
        (device / "driver").symlink_to(folder / "drivers" / "nvidia")
    return in_namespace(f"mount --bind {folder}/devices /sys/bus/pci/devices")


@pytest.fixture
def hardware(tmp_path, program, nvml):
    """A node that is no container, and so on this machine itself; it has the time to wait for others' readers."""
    made = install.Node(tmp_path / "node", program, nvml, seconds={"total": 60, "step": 30, "stuck": 20})
    made.write_entry(seconds=60)
    return made


@needs_mount
def test_a_library_unlike_the_module_holds_the_job(hardware, tmp_path):
    hardware.control("version_mismatch=1")
    ended = hardware.call(before=with_gpus_on_the_bus(tmp_path))
    assert ended.code == 1
    assert "nvml-not-answering: the NVML library and the kernel module are of different versions" in ended.said


@needs_mount
def test_a_driver_that_is_not_loaded_holds_the_job(hardware, tmp_path):
    hardware.control("driver_not_loaded=1")
    ended = hardware.call(before=with_gpus_on_the_bus(tmp_path))
    assert ended.code == 1
    assert "nvml-not-answering: the NVIDIA driver is not loaded" in ended.said
