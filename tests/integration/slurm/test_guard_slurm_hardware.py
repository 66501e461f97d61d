"""A real Slurm whose node comes back from a reboot with one GPU fewer: no job runs there, and the reason names it."""

import shutil
import uuid

import guarded
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(guarded.missing()), reason=guarded.missing()),
]


@pytest.fixture(scope="module")
def cluster(parts):
    with guarded.Guarded(parts, nodes=2, interval=2, reuse_seconds=60) as started:
        yield started


def boot(cluster, node):
    """What a reboot changes: /run is empty, and the boot has another ID. Here the machine is no virtual one, too."""
    run = cluster.of_node(node) / guarded.RUN

    def emptied():
        """Whether nothing is left, also of a health check that was at work."""
        shutil.rmtree(run, ignore_errors=True)
        return not run.exists()

    cluster.wait_until(emptied, "/run is empty")
    for name, path, content in (
        ("boot_id", "/proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n"),
        ("cpuinfo", "/proc/cpuinfo", "flags\t\t: fpu\n"),
    ):
        file = cluster.of_node(node) / "run" / name
        file.write_text(content)
        cluster.call(*cluster.inside(node), "mount", "--bind", f"/run/{name}", path)


def run_on(cluster, node):
    return cluster.call("srun", "--gres=gpu:1", "-w", node, "true")


def test_a_node_that_lost_a_gpu_by_a_reboot_gets_no_job_until_it_is_back(cluster):
    for node in cluster.nodes:
        boot(cluster, node)
        code, said = run_on(cluster, node)
        assert code == 0, said
    boot(cluster, "n01")
    cluster.control("n01", "count=1")
    assert run_on(cluster, "n01")[0], "the pass of the boot before counts no more"
    cluster.wait_until(lambda: cluster.reason("n01") == "nodetune: hardware-missing: 1 of 2 GPUs", "the reason is ours")
    assert run_on(cluster, "n02")[0] == 0
    boot(cluster, "n01")
    cluster.mend()
    assert run_on(cluster, "n01")[0] == 0


@pytest.mark.parametrize("memory", ["", None])
def test_a_reboot_that_loses_the_memory_or_damages_it_drains_nothing(cluster, memory):
    boot(cluster, "n01")
    file = cluster.of_node("n01") / "lib" / "guard" / "hardware.json"
    file.unlink() if memory is None else file.write_text(memory)
    cluster.control("n01", "count=1")
    before = cluster.inconclusive("n01")
    try:
        code, said = run_on(cluster, "n01")
        assert code == 0, said
        assert cluster.inconclusive("n01") > before or memory is None
        assert "DRAIN" not in cluster.state("n01")
    finally:
        cluster.remember("n01", gpus=0)
        cluster.control("n01")
