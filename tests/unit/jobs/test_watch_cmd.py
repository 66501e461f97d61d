"""`nodetune watch`: what it prints of saved watches, and its exit codes."""

import json

import pytest

from nodetune.history.history import History
from tests.support import documents, watched
from tests.support.commandline import nodetune

UNREAD = {"watch.gpus": {"unread": "NVML: the NVIDIA driver is not loaded"}}


@pytest.fixture
def saved(tmp_path):
    """saved(gpu001=("h200-x2", "gemm+copy")) → a folder with these facts; `jobs` are Slurm's numbers."""

    def save(jobs=None, **hosts):
        for host, place in hosts.items():
            found = place if isinstance(place, dict) else watched.facts(*place)
            for process in found.get("watch.processes", {}).get("value", {}).values():
                process["job"] = {"slurm": jobs[host]} if jobs else {}
            (tmp_path / f"{host}.json").write_text(json.dumps(watched.fact_file(found, host)))
        return tmp_path

    return save


def watch(folder, *words):
    return nodetune("watch", "--facts", folder, *words)


def test_jobs_come_with_their_verdicts_those_that_waste_most_first(saved):
    jobs = {"gpu001": "4711", "gpu002": "4711", "gpu003": "9"}
    where = {
        "gpu001": ("h200-x2", "loader+smallgemm"),
        "gpu002": ("h200-x2", "late+cpu"),
        "gpu003": ("h200-x2", "gemm+copy"),
    }
    done = watch(saved(jobs, **where))
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "slurm 4711 (root)  4 GPUs, 4 of them not well used"
    assert "slurm 9 (root)  2 GPUs" in lines
    assert "  waiting for the CPU        gpu[001-002] GPU1" in lines
    assert "      late  gpu001 GPU0 (waiting for the CPU), gpu001 GPU1 (waiting for the CPU)," in done.stdout
    assert "6 GPUs on 3 hosts: 1 computing (tensor cores), 1 memory-bound, 3 waiting for the CPU," in done.stdout


@pytest.mark.parametrize(
    ("loads", "code"), [("training", 0), ("nothing", 0), ("idle+fp32", 1), ("net+gemm", 3), ("starved+spin", 1)]
)
def test_the_exit_code_says_whether_gpus_are_wasted_or_unknown(saved, loads, code):
    assert watch(saved(gpu001=("h100-x2", loads))).returncode == code


def test_a_host_that_cannot_be_read_makes_the_watch_incomplete(saved):
    done = watch(saved(gpu001=("h100-x2", "training"), gpu002=dict(UNREAD)))
    assert done.returncode == 3
    assert "gpu002 GPUs  NVML: the NVIDIA driver is not loaded" in done.stdout


def test_a_watch_without_any_gpu_is_incomplete_and_says_why(saved):
    none = {"watch.gpus": {"absent": "no NVML library (libnvidia-ml.so.1) on this host"}}
    done = watch(saved(login1=none))
    assert done.returncode == 3
    assert done.stdout.splitlines() == [
        "login1  no NVML library (libnvidia-ml.so.1) on this host",
        "0 GPUs on 1 host: nothing to watch",
    ]
    assert watch(saved(login1=none, gpu001=("h100-x2", "training"))).returncode == 0


def test_a_watch_adds_the_use_of_busy_gpus_to_a_history(saved, tmp_path):
    place = str(tmp_path / "history.db")
    done = watch(saved(gpu001=("h200-x2", "gemm+copy"), gpu002=dict(UNREAD)), "--history", place)
    assert done.stderr == ""
    with History(place, make=False) as known:
        assert [name for name, _ in known.last_looks()] == ["gpu001"]
        leaves = known.leaves("gpu001", "watch.")
        assert {"watch.util/GPU0", "watch.tensor/GPU1", "watch.held.power/GPU0"} <= set(leaves)
        (used,) = known.series("gpu001", "watch.util/GPU0")
    assert 50_000 < used.high <= 100_000, "thousandths of a percent"


def test_facts_without_a_watch_are_incomplete():
    done = nodetune("watch", "--facts", "h200-x4")
    assert (done.returncode, done.stderr) == (3, "")
    assert "not collected" in done.stdout


@pytest.mark.parametrize("machine", watched.MACHINES)
def test_the_document_keeps_to_its_schema(saved, machine):
    done = watch(saved(gpu001=(machine, "late+cpu"), gpu002=dict(UNREAD)), "--format", "json")
    told = documents.valid("watch", done.stdout)
    assert [gpu["verdict"] for gpu in told["hosts"][0]["gpus"]] == ["peer", "cpu"]
    assert told["hosts"][1]["unread"]
    assert told["summary"]["verdicts"]["unknown"] == 1
    assert told["jobs"][0]["wasted"] == 2


def test_metrics_have_every_verdict_of_each_gpu(saved):
    done = watch(saved({"gpu001": "4711"}, gpu001=("h200-x2", "late+cpu")), "--format", "prometheus")
    lines = done.stdout.splitlines()
    assert 'nodetune_watch_gpu_verdict{host="gpu001",gpu="GPU0",verdict="peer"} 1' in lines
    assert 'nodetune_watch_gpu_verdict{host="gpu001",gpu="GPU0",verdict="cpu"} 0' in lines
    assert 'nodetune_watch_gpu_job{host="gpu001",gpu="GPU1",kind="slurm",job="4711",user="root"} 1' in lines
    assert 'nodetune_watch_gpu_busy_ratio{host="gpu001",gpu="GPU0",of="tensor"} 0.0639' in lines
    assert all(line.startswith(("#", "nodetune_watch_")) for line in lines)


def test_rates_of_links_and_disks_and_memory_in_use_are_told(saved):
    found = watched.facts("h200-x2", "late+cpu")
    watched.gpu_of(found)["memory_gib"] = 54.25
    load = found["watch.host"]["value"]
    load["links"] = {"mlx5_0/1": {"received": 45000.0, "sent": 120.0}, "eth0": {"received": 1.0, "sent": 1.0}}
    load["disks"] = {"nvme0n1": {"read": 3100.0, "written": 0.0, "busy": 0.98}}
    folder = saved(gpu001=found)
    lines = watch(folder).stdout.splitlines()
    links = lines.index("gpu001 mlx5_0/1  received 45.00 GB/s, sent 0.12 GB/s")
    assert lines[links + 1] == "gpu001 nvme0n1  read 3.10 GB/s, written 0.00 GB/s, busy 98 %"
    assert not any("eth0" in line for line in lines), "links that hardly move anything are not told"
    assert any("54.2 GiB in use" in line for line in lines)
    samples = watch(folder, "--format", "prometheus").stdout.splitlines()
    assert 'nodetune_watch_link_bytes_per_second{host="gpu001",link="mlx5_0/1",way="received"} 45000000000' in samples
    assert 'nodetune_watch_disk_busy_ratio{host="gpu001",disk="nvme0n1"} 0.98' in samples
    assert 'nodetune_watch_gpu_memory_used_bytes{host="gpu001",gpu="GPU0"} 58250493952' in samples


def test_hostile_names_do_no_harm(saved):
    found = watched.facts("h200-x2", "late+cpu")
    for process in found["watch.processes"]["value"].values():
        process["name"] = '\x1b[31m"}\n'
    found["watch.users"]["value"]["0"] = "eve\x1b\n"
    folder = saved(gpu001=found)
    for output_format in ("text", "prometheus"):
        assert "\x1b" not in watch(folder, "--format", output_format).stdout


def test_values_of_the_wrong_kind_are_unread(saved):
    found = watched.facts("h200-x2", "late+cpu")
    watched.gpu_of(found)["gpm"]["sm"] = "many"
    done = watch(saved(gpu001=found))
    assert done.returncode == 3
    assert "GPU0  not understood" in done.stdout


def test_usage_errors_are_one_line(tmp_path):
    done = nodetune("watch", "--facts", "h200-x4", "--save", tmp_path / "x")
    assert (done.returncode, done.stderr) == (
        2,
        "nodetune: --save cannot be used with --facts, which does not watch hosts\n",
    )
    assert nodetune("watch", "--seconds", "1").returncode == 2
