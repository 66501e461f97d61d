"""`nodetune verify --transport slurm` as a user meets it: on the nodes of a real Slurm, none of which SSH reaches."""

import json
import re
import signal
import subprocess

import lab
import pytest

from nodetune.facts.machine import UNKNOWN
from nodetune.hosts.target import UnreachableError
from nodetune.verify import run

LONG = 200
MEMORY = ("--suite", "full", "--only", "memory")
JITTER = ("--only", "jitter")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
]


@pytest.fixture(scope="module")
def cluster(place):
    with lab.Cluster(place, nodes=2, apart=True) as started:
        yield started
        started.wait_until(lambda: not started.run("squeue", "--noheader").strip(), "no job is left")


@pytest.fixture
def verify(cluster, tmp_path):
    """Starts `nodetune verify --transport slurm`, in an allocation of both nodes unless told otherwise; ended when the test is."""
    running = lab.Running(cluster, tmp_path)

    def start(*arguments, within=("salloc", "--quiet", "--nodes=2", "--ntasks-per-node=2")):
        return running.start("verify", "--transport", "slurm", *arguments, within=within)

    yield start
    running.end()


def ended(process):
    return lab.ended(process, LONG)


def on(cluster, node, *command):
    """What a command prints on a node."""
    return subprocess.run([*cluster.inside(node), *command], capture_output=True, text=True).stdout


def at_work(cluster, node):
    """The processes of the payload there."""
    return on(cluster, node, "pgrep", "-f", "exec.f.readline").split()


def measurement(cluster, node):
    """The process of a measurement under way there; empty before it begins."""
    return next((child for pid in at_work(cluster, node) for child in children(cluster, node, pid)), "")


def children(cluster, node, pid):
    return on(cluster, node, "cat", f"/proc/{pid}/task/{pid}/children").split()


def no_job_is_left(cluster):
    cluster.wait_until(lambda: not cluster.run("squeue", "--noheader").strip(), "no job is left")
    return True


def test_nodes_of_an_allocation_are_measured(cluster, verify):
    code, out, errors = ended(verify(*MEMORY))
    assert (code, errors) == (0, ""), out
    for node in cluster.nodes:
        assert re.search(rf"^{node}  unknown hardware  memory, ", out, re.MULTILINE)
    words = " ".join(out.split())
    assert words.count("note its hardware is unknown, so no baseline or shipped figure applies to it") == 2
    assert "2 hosts measured" in out
    assert no_job_is_left(cluster)


def test_without_an_allocation_srun_requests_the_named_nodes(cluster, verify, tmp_path):
    kept = ("--save-baseline", "site.json", "--format", "json", "-o", "found.json")
    code, _, errors = ended(verify(*MEMORY, "-i", "n02", *kept, within=()))
    assert code == 0, errors
    (host,) = json.loads((tmp_path / "found.json").read_text())["hosts"]
    assert (host["name"], host["state"]) == ("n02", "ok")
    assert all(each["value"] > 0.1 for each in host["measurements"]), "GB/s of any machine"
    assert {each["reproduce"] for each in host["measurements"]} == {
        "nodetune verify --transport slurm -i n02 -l n02 --only memory"
    }
    assert "not written" in errors, "there is no baseline of hardware that is not known"
    assert not (tmp_path / "site.json").exists()
    assert no_job_is_left(cluster)


def test_without_an_allocation_and_hosts_it_says_what_is_missing(verify):
    code, out, errors = ended(verify(within=()))
    assert (code, out) == (2, "")
    assert "not in an allocation: name the nodes with -i or -l, or use salloc or sbatch" in errors


def test_a_dying_program_on_one_node_spares_the_other(cluster, verify):
    process = verify(*JITTER)
    cluster.wait_until(lambda: measurement(cluster, "n02"), "n02 measures")
    on(cluster, "n02", "kill", "-9", at_work(cluster, "n02")[0])
    code, out, _ = ended(process)
    assert code == 3, out
    assert re.search(r"^n01  unknown hardware  jitter, ", out, re.MULTILINE)
    assert re.search(r"^dropped  n02: its task ended \(Killed\)", out, re.MULTILINE), out
    assert no_job_is_left(cluster)


def test_ctrl_c_leaves_nothing_behind_and_tells_what_was_known(cluster, verify):
    process = verify(*JITTER, "-i", "n01,n02", within=())
    cluster.wait_until(lambda: all(measurement(cluster, node) for node in cluster.nodes), "both measure")
    process.send_signal(signal.SIGINT)
    code, out, errors = ended(process)
    assert code == 3, out + errors
    assert re.search(r"interrupted  n\[01-02\]: the run was stopped", out)
    assert [at_work(cluster, node) for node in cluster.nodes] == [[], []]
    assert no_job_is_left(cluster)


def test_a_killed_verify_ends_its_step_and_processes(cluster, verify):
    process = verify(*JITTER, "-i", "n01,n02", within=())
    cluster.wait_until(lambda: all(measurement(cluster, node) for node in cluster.nodes), "both measure")
    process.kill()
    cluster.wait_until(lambda: not any(at_work(cluster, node) for node in cluster.nodes), "nothing is left")
    assert no_job_is_left(cluster)


def test_a_host_without_ssh_is_measured_unless_ssh_must_start_it():
    gone = UnreachableError("refused", "nothing listens on port 22")
    assert run.reached("n01", gone, even_if_busy=False).state == "refused"
    kept = run.reached_or_not("n01", gone, even_if_busy=False)
    assert (kept.state, kept.machine) == ("ok", UNKNOWN)
    assert kept.notes[0].endswith("nothing listens on port 22")


@pytest.mark.full
def test_a_tuning_across_nodes_names_the_node_that_has_no_gpu(cluster, tmp_path):
    running = lab.Running(cluster, tmp_path)
    words = ("nccl", "--transport", "slurm", "--multi-node", "--budget", "1m", "--save", str(tmp_path / "tuning.json"))
    code, out, errors = ended(running.start("tune", *words, within=("salloc", "--quiet", "--nodes=2")))
    assert (code, out) == (2, "")
    assert re.match(rf"nodetune: ({'|'.join(cluster.nodes)}): no libnccl\.so\.2 on this host", errors), errors
    assert no_job_is_left(cluster)
