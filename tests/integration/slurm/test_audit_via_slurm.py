"""`nodetune audit --transport slurm` and `facts`: the nodes of a real Slurm, all on this machine, none of which SSH reaches."""

import ast
import contextlib
import json
import os
import pickle
import pwd
import re
import signal
import subprocess
import sys
from pathlib import Path

import lab
import pytest

from nodetune.api.model import HostFacts
from nodetune.audit.selection import ALWAYS
from nodetune.foundation import text
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target
from nodetune.remote import payload
from nodetune.remote.slurm import probe, relay, sinfo

LONG = 200
ROOT_ONLY = "n03"
"""The node on which nobody may become root."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
    pytest.mark.xdist_group("audit-via-slurm"),  # one cluster, of which nodes are stopped and killed
]


@pytest.fixture(scope="module")
def cluster(place):
    started = lab.Cluster(place, 4, "SchedulerParameters=sched_interval=1,bf_interval=1", apart=True)
    for node in started.nodes:
        if node != ROOT_ONLY:
            allowed = started.of_node(node) / "etc" / "sudoers.d" / "lab"
            allowed.parent.mkdir(parents=True)
            allowed.write_text("nobody ALL=(root) NOPASSWD: ALL\n")
            allowed.chmod(0o440)
    with started:
        yield started


@pytest.fixture(autouse=True)
def here(cluster, monkeypatch):
    """This process is a user of the cluster. Whatever a test does, its nodes are well again and free at its end."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    yield
    cluster.wait_until(lambda: not cluster.run("squeue", "--noheader").strip(), "no job is left")
    cluster.wait_until(lambda: all(well(cluster, node) for node in cluster.nodes), "the nodes are well")


def well(cluster, node):
    """Whether a node is; one that is not is told to be."""
    state = cluster.state(node)
    if state != "IDLE":
        cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
    return state == "IDLE"


@pytest.fixture
def nodetune(cluster, tmp_path):
    """Starts nodetune; ended when the test is."""
    running = lab.Running(cluster, tmp_path)
    yield running.start
    running.end()


def ended(process):
    return lab.ended(process, LONG)


def audited(process):
    """Exit code, and the hosts of the JSON."""
    code, out, errors = ended(process)
    assert out, errors
    return code, {host["name"]: host for host in json.loads(out)["hosts"]}


def probed(targets, seconds=40.0, **options):
    """What became of hosts, by name."""
    asked = payload.families({*ALWAYS, "memory.total_kb"})
    found = probe.collect(
        [Target(each) if isinstance(each, str) else each for each in targets],
        *payload.script(asked, 20.0),
        SessionOptions(seconds=seconds, **options),
    )
    return {target.name: facts for target, facts, _ in found}


def reached(found):
    """The hosts that answered; of others their words, so that a test that fails shows them."""
    missed = {name: facts.message for name, facts in found.items() if not isinstance(facts, HostFacts)}
    print(missed)
    return sorted(set(found) - set(missed))


def slurmd(cluster, node):
    """The process of a node's slurmd; other tests have clusters with nodes of the same names."""
    words = ["pgrep", "-f", f"^\\S*slurmd -D -N {node} -f {cluster.conf}"]
    return int(subprocess.run(words, capture_output=True, text=True).stdout)


@contextlib.contextmanager
def stopped(cluster, node):
    """A node whose slurmd takes connections and never answers."""
    process = slurmd(cluster, node)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def planted(cluster, node, script):
    """A program on a node, instead of its Python."""
    path = cluster.of_node(node) / "opt" / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Target(node, python="/opt/python")


def at_work(cluster):
    """The processes of the probe and of what brought it, on all nodes."""
    words = ["pgrep", "-f", "NODETUNE_RELAY|/opt/python|python3 -I -S"]
    on = (subprocess.run([*cluster.inside(node), *words], capture_output=True, text=True) for node in cluster.nodes)
    return [line for each in on for line in each.stdout.split()]


def allocation(cluster, nodes):
    """Our job on these nodes."""
    words = ["sbatch", "--parsable", f"--nodelist={','.join(nodes)}", "--output=/dev/null", "--wrap=sleep 300"]
    job = cluster.run(*words, f"--nodes={len(nodes)}", "--no-kill").strip()
    cluster.wait_until(lambda: "RUNNING" in cluster.run("squeue", "--noheader", "--format=%T", "-j", job), "it runs")
    return job


def test_findings_equal_those_of_a_probe_on_the_node(cluster, nodetune, tmp_path):
    assert ended(nodetune("facts", "--transport", "slurm", "-i", "n01", "-o", "via"))[0] == 0
    own = ("-m", "nodetune", "facts", "-o", tmp_path / "local")
    subprocess.run([*cluster.inside("n01"), sys.executable, *own], check=True)
    (local,) = (tmp_path / "local").iterdir()
    here, there = (json.loads(path.read_text()) for path in (local, tmp_path / "via/n01.json"))
    unasked = set(here["facts"]) - set(there["facts"])
    of_no_check = {f"host.dmi.{name}" for name in ("bios_date", "bios_vendor", "board_name")}
    assert unasked <= of_no_check | {"memory.ksm.pages_sharing"}
    local.write_text(json.dumps({**here, "facts": {key: here["facts"][key] for key in there["facts"]}}))
    code, out, _ = ended(nodetune("diff", "via/n01.json", local))
    assert (code, "no differences" in out) == (0, True), out
    assert json.loads((tmp_path / "via/n01.json").read_text())["about"]["transport"] == "slurm"

    as_json = ("--no-compare", "--format", "json")
    _, by_srun = audited(nodetune("audit", "--transport", "slurm", "-i", "n01", *as_json))
    _, by_file = audited(nodetune("audit", "--facts", local, *as_json))
    (expected,) = by_file.values()
    assert len(by_srun["n01"]["findings"]) > 100
    assert told(by_srun["n01"]) == told(expected)


def told(host):
    """Findings without readings that move by themselves."""
    return [[each[key] for key in ("check", "status", "severity", "wanted", "reason")] for each in host["findings"]]


def test_without_allocation_limited_nodes_are_audited_at_once(cluster, nodetune):
    code, out, errors = ended(nodetune("audit", "--transport", "slurm", "-l", "n[01-04]:!n03", "--fail-on", "never"))
    assert (code, errors) == (0, "")
    assert "3 hosts audited" in out
    assert re.search(r"n\[01-02,04\]  profile ", out)
    assert "nodetune explain --transport slurm -i 'n[01-02,04]' --section by-hand\n" in out


def test_in_an_allocation_its_nodes_are_audited_and_others_named(nodetune):
    within = ("salloc", "--quiet", "--nodes=2", "--nodelist=n01,n02")
    words = ("audit", "--transport", "slurm", "--format", "json", "--fail-on", "never")
    code, hosts = audited(nodetune(*words, within=within))
    assert (code, sorted(hosts)) == (0, ["n01", "n02"])
    code, hosts = audited(nodetune(*words, "-i", "n02,n03", within=within))
    assert (code, hosts["n02"]["state"], hosts["n03"]["state"]) == (3, "ok", "unreachable")
    assert hosts["n03"]["message"] == "it is not in this allocation (n[01-02])"


def test_a_step_elsewhere_does_not_disturb_an_exclusive_job(cluster, monkeypatch):
    monkeypatch.setattr(probe, "ROOM_SECONDS", 2)
    job = cluster.run("sbatch", "--parsable", "--exclusive", "-wn02", "-o/dev/null", "--wrap=sleep 300").strip()
    try:
        cluster.wait_until(lambda: cluster.state("n02").startswith("ALLOC"), "n02 is held")
        found = probed(["n01", "n02", "n03"])
        assert reached(found) == ["n01", "n03"]
        assert found["n02"].message == "Slurm could give nothing on it (allocated, 0 of 4 CPUs idle)"
        message = probed(["n02"])["n02"].message
        assert message.startswith("Slurm could give nothing on it (allocated, 0 of 4 CPUs idle): salloc: error: ")
    finally:
        cluster.run("scancel", job)


def test_down_and_drained_nodes_are_named_with_slurms_reason(cluster, nodetune):
    cluster.run("scontrol", "update", "nodename=n02", "state=down", "reason=GPU3 | lost")
    cluster.run("scontrol", "update", "nodename=n04", "state=drain", "reason=new fans")
    code, hosts = audited(nodetune("audit", "--transport", "slurm", "-i", "n[01-05]", "--format", "json"))
    states = {name: (host["state"], host["message"]) for name, host in hosts.items()}
    assert code == 3
    assert states == {
        "n01": ("ok", ""),
        "n02": ("unreachable", "Slurm reports down (GPU3 | lost)"),
        "n03": ("ok", ""),
        "n04": ("unreachable", "Slurm reports drained (new fans)"),
        "n05": ("unreachable", "Slurm has no node with this name"),
    }


def test_a_down_node_of_an_allocation_is_named(cluster, monkeypatch):
    job = allocation(cluster, ["n01", "n02", "n03"])
    try:
        cluster.run("scontrol", "update", "nodename=n02", "state=down", "reason=pulled out")
        cluster.run("scontrol", "update", "nodename=n03", "state=drain", "reason=soon")
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("SLURM_JOB_NODELIST", "n[01-03]")
        found = probed(sinfo.allocated())
        assert reached(found) == ["n01", "n03"]
        assert found["n02"].message == "Slurm reports down (pulled out)"
    finally:
        cluster.run("scancel", job)


def test_a_silent_slurmd_costs_other_nodes_nothing(cluster):
    with stopped(cluster, "n03"):
        found = probed(["n01", "n02", "n03"], seconds=12)
    assert reached(found) == ["n01", "n02"]
    assert found["n03"].state == "deadline"
    assert found["n03"].message.startswith("its task had not begun after 12 s: is slurmd hanging there")


def test_hosts_that_srun_ended_for_a_bad_node_are_tried_again(cluster):
    slow = planted(cluster, "n01", 'case "$*" in *RELAY*) ;; *) sleep 20 ;; esac; exec python3 "$@"')
    os.kill(slurmd(cluster, "n04"), signal.SIGKILL)
    try:
        found = probed([slow, "n02", "n03", "n04"], seconds=90)
    finally:
        cluster.run("scontrol", "update", "nodename=n04", "state=down", "reason=its slurmd died")
        again = [*cluster._apart("n04"), "slurmd", "-D", "-N", "n04", "-f", str(cluster.conf)]
        cluster._shells["n04"] = cluster._start(again).pid  # its namespaces ended with it
    assert reached(found) == ["n01", "n02", "n03"]
    assert found["n04"].state == "unreachable"
    assert re.search(r"srun could not start a task there: .+: is its slurmd running\?", found["n04"].message)


def test_a_hanging_host_ends_at_its_deadline_without_processes(cluster):
    found = probed([planted(cluster, "n02", "sleep 300"), "n01", "n03"], seconds=12)
    assert reached(found) == ["n01", "n03"]
    assert (found["n02"].state, found["n02"].message) == ("deadline", "its task did not finish within 12 s")
    cluster.wait_until(lambda: not at_work(cluster), "nothing is left")


def test_endless_output_and_garbage_of_one_host_harm_nobody(cluster):
    endless = planted(cluster, "n01", "yes 0: nonsense")
    garbage = planted(cluster, "n02", r"printf '\033[2Jwhat?\n'; exit 3")
    found = probed([endless, garbage, "n03", "n04"], most_bytes=1 << 20)
    assert reached(found) == ["n03", "n04"]
    assert found["n01"].state == "too much output"
    assert found["n02"].state == "bad answer"
    assert found["n02"].message == text.plain(found["n02"].message)
    assert "(exit status 3)" in found["n02"].message
    cluster.wait_until(lambda: not at_work(cluster), "nothing is left")


def test_a_node_without_that_python_is_told_as_such():
    found = probed([Target("n01", python="/opt/python9"), "n02", "n03"])
    assert reached(found) == ["n02", "n03"]
    assert found["n01"].state == "no python"
    alone = probed([Target("n01", python="/opt/python9")])["n01"]
    assert (alone.state, alone.message.endswith("is python3 (3.6 or newer) installed there?")) == ("no python", True)


def test_ctrl_c_ends_the_step_and_tells_what_is_known(cluster, nodetune, tmp_path):
    planted(cluster, "n02", "sleep 300")
    (tmp_path / "hosts.yml").write_text(
        "all: {hosts: {n01: {}, n03: {}, n02: {ansible_python_interpreter: /opt/python}}}\n"
    )
    process = nodetune("audit", "--transport", "slurm", "-i", "hosts.yml", "--format", "json", "--timeout", 100)
    inside = [*cluster.inside("n02"), "pgrep", "-f", "^sleep 300"]
    cluster.wait_until(lambda: subprocess.run(inside, capture_output=True).returncode == 0, "n02 hangs")
    process.send_signal(signal.SIGINT)
    code, hosts = audited(process)
    assert code == 3
    assert hosts["n02"]["state"] == "interrupted"
    assert at_work(cluster) == []


def test_a_killed_nodetune_leaves_nothing_on_the_nodes(cluster, nodetune, tmp_path):
    planted(cluster, "n02", "sleep 300")
    (tmp_path / "hosts.yml").write_text(
        "all: {hosts: {n02: {ansible_python_interpreter: /opt/python}, n01: {}, n03: {}}}\n"
    )
    process = nodetune("audit", "--transport", "slurm", "-i", "hosts.yml", "--timeout", 100)
    inside = [*cluster.inside("n02"), "pgrep", "-f", "^sleep 300"]
    cluster.wait_until(lambda: subprocess.run(inside, capture_output=True).returncode == 0, "n02 hangs")
    process.kill()
    cluster.wait_until(lambda: not at_work(cluster), "nothing is left")


def as_nobody(work):
    """What `work` returns, done by an ordinary user."""
    user, (here, there) = pwd.getpwnam("nobody"), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            os.chdir("/")
            os.write(there, pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(told)


def test_an_ordinary_user_reads_as_one_and_through_sudo_as_root():
    probed(["n01"])  # so that what the user may not read here is in memory
    targets = ["n01", ROOT_ONLY]
    plain = as_nobody(lambda: uids(probed(targets)))
    root = as_nobody(lambda: uids(probed([Target(name, become=True) for name in targets])))
    assert plain == {"n01": pwd.getpwnam("nobody").pw_uid, ROOT_ONLY: pwd.getpwnam("nobody").pw_uid}
    assert root == {"n01": 0, ROOT_ONLY: "become failed"}


def uids(found):
    """As whom the probe ran on each host, or why it did not."""
    return {name: each.about["uid"] if isinstance(each, HostFacts) else each.state for name, each in found.items()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "not in an allocation: name the nodes with -i or -l, or use salloc or sbatch"),
        (("-i", "n01", "-u", "root"), "-u is for SSH only"),
        (("-i", "n01", "-K"), "-K is for SSH only"),
        (("-l", "m*"), "no host or group matches 'm*'"),
    ],
)
def test_what_srun_cannot_do_is_a_usage_error(nodetune, words, said):
    code, out, errors = ended(nodetune("audit", "--transport", "slurm", *words))
    assert (code, out) == (2, "")
    assert said in errors.splitlines()[-1]


def test_without_srun_it_is_one_line(nodetune):
    code, out, errors = ended(nodetune("audit", "--transport", "slurm", "-i", "n01", PATH="/nowhere"))
    assert (code, out) == (2, "")
    assert errors == (
        "nodetune: --transport slurm: srun, salloc, sinfo not found: run nodetune on a node of the cluster\n"
    )


def test_a_wrong_partition_is_reported_with_the_right_one(monkeypatch):
    monkeypatch.setenv("SLURM_PARTITION", "nope")
    assert probed(["n01"])["n01"].message == "it is not in partition nope: set SLURM_PARTITION=main"


def test_a_refused_step_is_told_in_slurms_words(monkeypatch):
    monkeypatch.setenv("SLURM_GPUS_PER_NODE", "8")
    message = probed(["n01"])["n01"].message
    assert message.startswith("Slurm could give nothing on it (idle, 4 of 4 CPUs idle): salloc: error: ")
    assert "Invalid generic resource (gres) specification" in message
    monkeypatch.setenv("SLURM_JOB_ID", "99999")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n01")
    found = probed(["n01"])["n01"]
    assert (found.state, "invalid job 99999" in found.message) == ("dropped", True)


def test_a_silent_controller_is_told_for_every_host(cluster):
    cluster.stop_controller()
    try:
        found = probed(["n01", "n02"])
    finally:
        cluster.start_controller()
        cluster.wait_until(lambda: cluster.state("n01").startswith("IDLE"), "slurmctld is back")
    assert {facts.state for facts in found.values()} == {"unreachable"}
    assert found["n01"].message.startswith("sinfo failed: ")


def test_the_program_on_nodes_is_python_36():
    tree = ast.parse(Path(relay.__file__).read_text(), feature_version=(3, 6))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {"os"} <= imported <= set(sys.stdlib_module_names)
