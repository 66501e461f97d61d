"""Hosts that answer anything: no tuning crashes, and no answer that is none counts."""

from contextlib import suppress

import pytest

from nodetune.facts import document
from nodetune.hosts.target import Target
from nodetune.remote.live_pool import Ended
from nodetune.tune import study
from nodetune.tune.benches import gpu, nccl, storage, tcp
from nodetune.tune.benches.nccl_cases import NcclRequest
from nodetune.tune.model import BenchError
from nodetune.verify import figures

WRONG = (None, True, -1, 0, 1 << 70, 1.5, "x", "x" * 5000, [], [None], {}, {"x": None}, float("nan"), float("inf"))
GPUS = {"GPU0": 1, "GPU1": 1}


def each(value):
    return {"each": {name: {"value": value} for name in GPUS}}


FACTS = {
    "host.kernel": {"value": "6.8.0"},
    "gpu.nvml": {"value": "13"},
    "gpu.names": each("NVIDIA H200"),
    "gpu.driver_version": {"value": "580.159.04"},
    "gpu.supported_clocks": each({"memory": [3201], "sm": [345, 990, 1500, 1980]}),
    "gpu.power_management_limit_constraints": each([200_000, 700_000]),
    "gpu.power_management_default_limit": each(700_000),
    "gpu.compute_running_processes": each([]),
    "gpu.mps_compute_running_processes": each([]),
    "services.processes": {"value": {}},
    "xid.events": {"value": []},
    "nccl.settings": {"value": []},
    "rdma.ports": {"value": {}},
    "mounts.points": {"value": {"/": {"type": "ext4", "source": "/dev/vda", "device": "254:0", "disk": "vda", "root": "/",
                                       "options": [], "super_options": [], "rotational": False}}},
    "sysctl.vm.dirty_bytes": {"value": 0},
    "sysctl.vm.dirty_background_bytes": {"value": 0},
    "sysfs./sys/block/vda/queue/read_ahead_kb": {"value": 128},
    "sysfs./sys/block/vda/queue/nr_requests": {"value": 64},
    "file./sys/block/vda/queue/scheduler": {"value": "[none] kyber"},
    "sysctl.net.ipv4.tcp_rmem": {"value": [4096, 131072, 6291456]},
    "sysctl.net.ipv4.tcp_wmem": {"value": [4096, 16384, 4194304]},
    "sysctl.net.ipv4.tcp_congestion_control": {"value": "cubic"},
    "sysctl.net.ipv4.tcp_available_congestion_control": {"value": "cubic bbr"},
    "sysctl.net.core.netdev_max_backlog": {"value": 1000},
}  # fmt: skip
USED = {
    "gpu": ("gpu.", "services.", "xid."),
    "nccl": ("gpu.", "xid.", "nccl.", "rdma."),
    "storage": ("host.", "mounts.", "sysctl.vm", "sysfs.", "file."),
    "tcp": ("host.", "sysctl.net"),
}
ABOUT = {
    "nccl": {"nccl": "2.28.9", "gpus": 2, "nodes": 1, "transport": "P2P", "link": "NVL", "nvls": False, "settings": {}, "size": 1 << 28,
             "nics": [], "gdr": None, "algorithm": "RING", "channels": 16},
    "gpu": {},
    "storage": {"device": "/dev/vda", "file_system": "ext4"},
    "tcp": {"address": "10.0.0.2", "interface": "eth0", "retransmitted": 0.0, "congestion": "cubic"},
}  # fmt: skip
RECORDS = {
    "nccl": [("nccl_settings", name, "setting {}", "GB/s") for name in ("all_reduce", "all_gather")],
    "gpu": [("gpu_energy", "energy", "GPU0", "J/TFLOP"), ("gpu_energy", "bf16", "GPU0", "TFLOP/s")],
    "storage": [("disk_buffered", "read", "/data", "GB/s"), ("disk", "random_read", "/data", "kIOPS")],
    "tcp": [("tcp", "one_stream", "a→b", "Gb/s"), ("tcp", "tcp", "a→b", "Gb/s")],
}


class Host:
    """A host of a subject. `lie` changes what it says of a setting, once it has been measured as it is."""

    def __init__(self, subject, facts=FACTS, lie=None):
        self.subject, self.given, self.lie = subject, facts, lie
        self.first = True

    def facts(self, targets, names, _reach):
        facts = document.from_data({"facts": {name: self.given[name] for name in self.given if name in names}}, "a")
        return {target.name: facts for target in targets}

    def how(self, targets, plan_for, _reach):
        plan = plan_for(targets[0])
        options = [each["options"] for each in plan["measurements"]]
        settings = len(options[0].get("settings", [{}]))
        set_here = settings > 1 or any(each.get("hold") or each.get("set") for each in options)
        records = [(*each, number) for number in range(settings) for each in RECORDS[self.subject]]
        for measurement, metric, subject, unit, number in records:
            named = {"measurement": measurement, "metric": metric, "subject": subject.format(number), "unit": unit}
            raw = {**named, "better": "lower" if unit == "J/TFLOP" else "higher", "samples": [100.0]}
            raw["about"] = dict(ABOUT[self.subject])
            if self.lie and (set_here or self.first is None):
                raw = self.lie(raw)
            yield targets[0], {"record": figures.record(raw)}
        yield targets[0], Ended(None, 1.0)

    def bench(self):
        if self.subject == "gpu":
            return gpu.GpuBench(Target("a"), gpu.GpuRequest(allow_gpu_settings=True), None, self.how, self.facts)
        if self.subject == "nccl":
            wanted = NcclRequest(objective="bandwidth", sizes=(1 << 28,), only=("NCCL_BUFFSIZE",))
            return nccl.NcclBench([Target("a")], wanted, None, self.how, self.facts)
        if self.subject == "storage":
            return storage.StorageBench(Target("a"), storage.StorageRequest("/data", True), None, self.how, self.facts)
        return tcp.TcpBench([Target("a"), Target("b")], tcp.TcpRequest(True), None, self.how, self.facts)


def tuned(host):
    return study.tune(host.bench(), 5.0)


def replaced(data):
    """The value with one part of it replaced by each wrong type; of a list or an object's values, the first."""
    yield from WRONG
    if isinstance(data, dict):
        for name in data:
            yield {key: one for key, one in data.items() if key != name}
            yield from ({**data, name: part} for part in replaced(data[name]))
    elif isinstance(data, list) and data:
        yield from ([part, *data[1:]] for part in replaced(data[0]))


@pytest.mark.parametrize("subject", USED)
def test_an_honest_host_is_tuned(subject):
    assert tuned(Host(subject)).state == study.NOTHING


@pytest.mark.parametrize("subject", USED)
def test_no_fact_crashes_a_tuning(subject):
    for name in (one for one in FACTS if one.startswith(USED[subject])):
        ((kind, content),) = FACTS[name].items()
        values = replaced(content if kind == "value" else content["GPU0"]["value"])
        for value in values:
            wrong = {"value": value} if kind == "value" else {"each": {**content, "GPU0": {"value": value}}}
            with suppress(BenchError, document.FactsError):
                Host(subject, {**FACTS, name: wrong}).bench()


@pytest.mark.parametrize("limit", [1 << 62, 1 << 70, 0, -5])
def test_a_power_limit_that_no_gpu_has_is_refused_at_once(limit):
    wanted = gpu.GpuRequest(allow_gpu_settings=True, ladder="power")
    host = Host("gpu", {**FACTS, "gpu.power_management_default_limit": each(limit)})
    with pytest.raises(BenchError, match="power limit"):
        gpu.GpuBench(Target("a"), wanted, None, host.how, host.facts)


@pytest.mark.parametrize("subject", USED)
def test_no_answer_to_a_setting_crashes_or_wins(subject):
    sound = {"measurement": RECORDS[subject][0][0], "better": "higher", "samples": [100.0], "about": ABOUT[subject]}
    for wrong in replaced(sound):

        def lie(raw, wrong=wrong):
            return {**raw, **wrong} if isinstance(wrong, dict) else wrong

        with suppress(BenchError):
            assert not tuned(Host(subject, lie=lie)).accepted, wrong


@pytest.mark.parametrize("subject", USED)
def test_no_answer_of_the_default_crashes_a_tuning(subject):
    for wrong in replaced({"samples": [100.0], "about": ABOUT[subject], "metric": "x", "subject": "x", "unit": "x"}):

        def lie(raw, wrong=wrong):
            return {**raw, **wrong} if isinstance(wrong, dict) else wrong

        host = Host(subject, lie=lie)
        host.first = None
        with suppress(BenchError):
            tuned(host)
