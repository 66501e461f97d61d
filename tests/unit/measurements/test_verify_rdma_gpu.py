"""RDMA from GPU to GPU: which go together, what is run, and what perftest with CUDA prints, as people published it.

No adapter with a GPU is here. The lines around the table are those of linux-rdma/perftest issue 241, the failure is that of
issue 126, the order of options that of issue 336; the table is the one that perftest 4.5 printed here with soft-RoCE.
"""

import json
import os
from types import SimpleNamespace

import pytest

from nodetune.facts import machine
from nodetune.measurements import rdma, rdma_copy, rdma_gpu
from nodetune.measurements.host import external_tool, numa
from nodetune.measurements.host import report as reporting
from nodetune.verify import hardware_limits
from nodetune.verify.model import Figure
from nodetune.verify.suites import SuiteRequest
from tests.unit.measurements.test_verify_perftest import device, recorded

AROUND = """Perftest doesn't supports CUDA tests with inline messages: inline size set to 0
initializing CUDA
Listing all CUDA devices in system:
CUDA device 0: PCIe address is 17:00
CUDA device 1: PCIe address is 65:00

Picking device No. 0
[pid = 3669, dev = 0] device name = [NVIDIA A30]
creating CUDA Ctx
making it the current CUDA Ctx
cuMemAlloc() of a 67108864 bytes GPU buffer
allocated GPU buffer address at 00007f3fa4000000 pointer=0x7f3fa4000000
"""
FAILED = """allocated GPU buffer address at 0000010013000000 pointer=0x10013000000
Couldn't allocate MR
failed to create mr
Failed to create MR
Failed to initialize RDMA contexts.
ERRNO: Bad address.
"""


def test_perftests_words_on_cuda_are_no_figure_and_no_complaint():
    assert rdma.read(AROUND + recorded("soft-roce")) == rdma.read(recorded("soft-roce"))
    assert rdma.explained(FAILED.encode()) == "Couldn't allocate MR"


# Two switches: mlx5_0 with GPUs 18 and 19 below one, mlx5_1 with 5d below the other; ab is on another root complex
TREE = {
    "0000:18:00.0": "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0",
    "0000:19:00.0": "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0",
    "0000:5d:00.0": "pci0000:5a/0000:5a:01.0/0000:5b:00.0/0000:5c:00.0/0000:5d:00.0",
    "0000:ab:00.0": "pci0000:a7/0000:a7:01.0/0000:ab:00.0",
    "mlx5_0": "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0",
    "mlx5_1": "pci0000:5a/0000:5a:01.0/0000:5b:00.0/0000:5c:02.0/0000:5f:00.0",
    "mlx5_2": "pci0000:c0/0000:c0:01.0/0000:c1:00.0",
}
NODES = {"0000:ab:00.0": 1, "0000:c1:00.0": 1}
GPUS = sorted(name for name in TREE if name.startswith("0000"))


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server with that tree of PCIe bridges."""
    (tmp_path / "pci").mkdir()
    (tmp_path / "class").mkdir()
    for name, path in TREE.items():
        (tmp_path / "devices" / path).mkdir(parents=True)
        if name.startswith("mlx5"):
            device(tmp_path / "class", name, hardware=False)
            (tmp_path / "class" / name / "device").symlink_to(tmp_path / "devices" / path)
        else:
            (tmp_path / "pci" / name).symlink_to(tmp_path / "devices" / path)
    monkeypatch.setattr(rdma, "CLASS", str(tmp_path / "class"))
    monkeypatch.setattr(rdma_gpu, "PCI", str(tmp_path / "pci"))
    monkeypatch.setattr(rdma_gpu, "gpus", lambda: GPUS)
    monkeypatch.setattr(numa, "gpu_node", lambda bdf: NODES.get(bdf, 0))
    return tmp_path


def test_an_adapter_is_measured_with_the_gpus_below_its_switch(server):
    found = rdma_gpu.lanes(rdma.ports({}), GPUS, every=False)
    assert {name: about["shared_bridges"] for name, about in found.items()} == {
        "GPU0 mlx5_0/1": 2,
        "GPU1 mlx5_0/1": 2,
        "GPU2 mlx5_1/1": 2,
        "GPU3 mlx5_2/1": 0,  # no bridge in common: the one of its NUMA node
    }
    assert len(rdma_gpu.lanes(rdma.ports({}), GPUS, every=True)) == 3 * 4
    assert rdma_gpu.lanes(rdma.ports({}), [], every=False) == {}


def test_the_gpu_is_counted_by_address_and_dma_buf_follows(server):
    about = rdma_gpu.lanes(rdma.ports({}), GPUS, every=False)["GPU2 mlx5_1/1"]
    words = rdma_gpu.command("/usr/bin/ib_write_bw", {}, about, 18515, dmabuf=True)
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in words
    assert words[-2:] == ["--use_cuda=2", "--use_cuda_dmabuf"]
    assert words[words.index("-d") + 1] == "mlx5_1"
    assert rdma_gpu.command("/usr/bin/ib_write_bw", {}, about, 1, dmabuf=False)[-1] == "--use_cuda=2"


STAND_IN = """#!/bin/sh
case "$*" in *--help*) echo '      --use_cuda=<cuda device id>'; exit 1;; esac
echo "$*" >> {seen}
cat {table}
"""


OFFERED = {"GPU2 mlx5_1/1": {"ports": [4001, 4002]}}


def client(tmp_path, monkeypatch, text=STAND_IN, measure=rdma_gpu.measure, ports=OFFERED, **more):
    """What host b reports after host a offered servers for the GPUs, or adapters, that it has: {metric or subject: record}."""
    program, seen, table = tmp_path / "ib_write_bw", tmp_path / "seen", tmp_path / "table"
    table.write_text(AROUND + recorded("soft-roce"))
    program.write_text(text.format(seen=seen, table=table))
    program.chmod(0o755)
    monkeypatch.setattr(external_tool, "need", lambda *_: str(program))
    here, there = os.pipe()
    offered = {"ways": [["127.0.0.1", 1]], "door": None, "ports": ports}
    for number, topic in ((0, "server 0 1"), (1, "done 1")):
        os.write(
            there, json.dumps({"from": 0, "topic": topic, "data": offered if number == 0 else None}).encode() + b"\n"
        )
    with (tmp_path / "told").open("wb") as out:
        report = reporting.Report("rdma_gpu", out.fileno(), here, {"hosts": ["a", "b"], "self": 1}, seconds=20)
        options = {"addresses": {"b": "127.0.0.1"}, "repeats": 1, **more}
        monkeypatch.setattr(rdma, "servers", Nobody)
        before = os.sched_getaffinity(0)
        try:
            measure(options, report)
        finally:
            os.sched_setaffinity(0, before)
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    records = [each for kind, each in told if kind == "record"]
    by_metric = ("together_share", "rdma_kept", "copies_kept")
    key = lambda each: each["metric"] if each.get("metric") in by_metric else each.get("subject")  # noqa: E731
    return {key(each): each for each in records}, seen


class Nobody:
    def __init__(self, *_):
        pass

    def __enter__(self):
        return {}

    def __exit__(self, *_):
        pass


def test_a_pair_of_gpu_and_adapter_is_measured_once_a_server(server, tmp_path, monkeypatch):
    found, seen = client(tmp_path, monkeypatch)
    record = found["GPU2 mlx5_1/1 b→a"]
    assert record["samples"] == [0.022427, 0.022427]
    assert record["about"]["by"] == "dma-buf"
    assert (record["about"]["gpu"], record["about"]["adapter"]) == (2, "mlx5_1/1")
    assert found["GPU0 mlx5_0/1 b→a"]["skip"] == "a has no active port for GPU0 mlx5_0/1"
    calls = seen.read_text().splitlines()
    assert [line.split(" -p ")[1].split()[0] for line in calls] == ["4001", "4002"]
    assert all(line.endswith("--use_cuda=2 --use_cuda_dmabuf 127.0.0.1") for line in calls)


TOGETHER = """#!/bin/sh
echo "$*" >> {seen}
case "$*" in *"-p 4002"*|*"-p 4012"*) touch {seen}-$$; while [ $(ls {seen}-* | wc -l) -lt 2 ]; do sleep 0.01; done;; esac
cat {table}
"""


def test_all_ports_run_at_once_and_as_a_share_of_each_alone(server, tmp_path, monkeypatch):
    ports = {"mlx5_0/1": {"ports": [4001, 4002]}, "mlx5_1/1": {"ports": [4011, 4012]}}
    found, seen = client(tmp_path, monkeypatch, TOGETHER, rdma.measure, ports)
    assert found["mlx5_0/1 b→a"]["samples"] == found["mlx5_1/1 b→a"]["samples"] == [0.022427]
    assert found["mlx5_2/1 b→a"]["skip"] == "a has no active port for mlx5_2/1"
    assert found["2 ports b→a"]["samples"] == [pytest.approx(2 * 0.022427)]
    assert (found["together_share"]["samples"], found["together_share"]["unit"]) == ([pytest.approx(100)], "%")
    calls = [line.split(" -p ")[1].split()[0] for line in seen.read_text().splitlines()]
    assert calls[:2] == ["4001", "4011"], "each alone first"
    assert sorted(calls[2:]) == ["4002", "4012"]


def test_only_what_is_below_one_root_port_is_measured_together(server):
    found = rdma_copy.below_one_port(rdma.lanes({}), GPUS)
    assert {name: (about["gpu"], about["shared_bridges"]) for name, about in found.items()} == {
        "mlx5_0/1": (0, 2),
        "mlx5_1/1": (2, 2),
    }, "mlx5_2 is on the NUMA node of a GPU, but below another root port"
    assert rdma_copy.below_one_port(rdma.lanes({}), []) == {}


BOTH = """#!/bin/sh
echo "$*" >> {seen}
case "$*" in *"-p 4001"*) sed s/0.022427/0.044854/g {table};; *) sleep 0.3; cat {table};; esac
"""


def test_rdma_and_copies_keep_a_share_of_what_each_does_alone(server, tmp_path, monkeypatch, libcuda):
    ports = {"mlx5_0/1": {"ports": [4001, 4002]}}
    more = {"libcuda": libcuda, "copy_size": 1 << 20}
    monkeypatch.setattr(rdma_gpu, "gpus", lambda: GPUS[:1])
    found, seen = client(tmp_path, monkeypatch, BOTH, rdma_copy.measure, ports, **more)
    kept = found["rdma_kept"]
    assert (kept["subject"], kept["samples"], kept["unit"]) == ("GPU0 mlx5_0/1 b→a", [pytest.approx(50)], "%")
    assert kept["about"]["alone"] == pytest.approx(0.044854)
    assert found["copies_kept"]["samples"][0] > 0
    assert len(seen.read_text().splitlines()) == 2


def test_a_host_without_a_shared_root_port_is_skipped(server, tmp_path, monkeypatch):
    monkeypatch.setattr(rdma_gpu, "gpus", lambda: GPUS[3:])
    with pytest.raises(reporting.SkipError, match="no GPU is below the same PCIe root port"):
        client(tmp_path, monkeypatch, BOTH, rdma_copy.measure, {})


def test_ports_that_share_a_link_have_a_smaller_share(monkeypatch):
    told = {}
    monkeypatch.setattr(rdma, "read", float)
    report = SimpleNamespace(result=lambda subject, samples, *_, metric: told.update({metric: (subject, samples)}))
    rdma.summed(report, "a→b", [["190", "200", "210"], ["200"]], ["101", "99"])
    assert told == {"together": ("2 ports a→b", [200.0]), "together_share": ("2 ports a→b", [50.0])}


def test_a_perftest_without_cuda_is_skipped_with_what_to_do(server, tmp_path, monkeypatch):
    with pytest.raises(reporting.SkipError, match="built without CUDA: build it with"):
        client(tmp_path, monkeypatch, STAND_IN.replace("--use_cuda=<cuda device id>", "--help"))


def test_it_is_measured_only_if_named_and_the_port_is_its_limit():
    assert "rdma_gpu" not in [item["name"] for item in SuiteRequest(pairs=True).items]
    assert [item["name"] for item in SuiteRequest(only=("rdma", "rdma_gpu")).items] == ["rdma", "rdma_gpu"]
    figure = Figure("a", "rdma_gpu", "rdma_gpu", "GPU0 mlx5_0/1 a→b", ((380.0,),), "Gb/s", about={"rate": 400.0})
    assert hardware_limits.of(figure, machine.UNKNOWN).value == 400.0
