"""`nodetune audit --transport slurm` inside an allocation, ended by a signal: nothing of it is left, here or on the nodes."""

import os
import signal
import subprocess

import lab
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
    pytest.mark.xdist_group("audit-via-slurm-ended"),
]


@pytest.fixture(scope="module")
def cluster(place):
    with lab.Cluster(place, 2, "SchedulerParameters=sched_interval=1,bf_interval=1", apart=True) as started:
        program = started.of_node("n02") / "opt" / "python"
        program.write_text("#!/bin/sh\nsleep 300\n")
        program.chmod(0o755)
        yield started


def at_work(cluster, pattern):
    return subprocess.run([*cluster.inside("n02"), "pgrep", "-f", pattern], capture_output=True).returncode == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_nodetune_leaves_no_file_and_no_process(cluster, tmp_path, how):
    here = tmp_path / "temporary"
    here.mkdir()
    (tmp_path / "hosts.yml").write_text("all: {hosts: {n01: {}, n02: {ansible_python_interpreter: /opt/python}}}\n")
    running = lab.Running(cluster, tmp_path)
    within = ("salloc", "--quiet", "--nodes=2", "/bin/sh", "-c", 'echo $$ > pid; exec "$@"', "sh")
    words = ("audit", "--transport", "slurm", "-i", "hosts.yml", "--timeout", 100)
    try:
        process = running.start(*words, within=within, TMPDIR=str(here))
        cluster.wait_until(lambda: at_work(cluster, "^sleep 300"), "n02 hangs")
        os.kill(int((tmp_path / "pid").read_text()), how)
        lab.ended(process, 200)
        cluster.wait_until(lambda: not at_work(cluster, "NODETUNE_RELAY|/opt/python|^sleep 300"), "n02 is left alone")
        assert list(here.iterdir()) == []
    finally:
        running.end()
        cluster.wait_until(lambda: not cluster.run("squeue", "--noheader").strip(), "no job is left")
