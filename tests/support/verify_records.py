"""Records in the shape that hosts send, of a node with eight H200s, and a way to play them instead of measuring.

The figures are those that were measured on such a node; a test plants its fault in them.
"""

import json
from pathlib import Path

from nodetune.facts import document as facts_document
from nodetune.facts import machine
from nodetune.hosts.target import Target
from nodetune.remote.live_pool import Ended
from nodetune.verify import baseline, figures

HERE = Path(__file__).parents[1]
COLLECTIVES = {  # busbw of nccl-tests on that node, out of place, NVLS off
    "all_reduce": {128 << 20: 335.1, 512 << 20: 355.2, 2 << 30: 363.3, 8 << 30: 367.0},
    "all_gather": {128 << 20: 295.9, 512 << 20: 332.0, 2 << 30: 348.4, 8 << 30: 357.6},
    "alltoall": {128 << 20: 281.4, 512 << 20: 302.5, 2 << 30: 338.9, 8 << 30: 343.8},
}
NCCL = {"nccl": "2.28.9", "gpus": 8, "nodes": 1, "nvls": False, "transport": "P2P", "dtype": "float32"}


def facts(name="hgx-h200-tuned", host="gpu1"):
    return facts_document.from_data(json.loads((HERE / "data" / "synthetic" / f"{name}.json").read_text()), host)


def h200(host="gpu1"):
    return machine.of(facts(host=host))


def record(measurement, metric, subject, value, unit="GB/s", better="higher", **about):
    """Five samples within a per mille of the value."""
    samples = [value * (1 + step / 2000) for step in (0, 1, -1, 2, -2)]
    named = {"measurement": measurement, "metric": metric, "subject": subject, "unit": unit, "better": better}
    return {**named, "samples": samples, "about": about}


def whole(gpus=8, **planted):
    """All records of a run. `planted` replaces single values: `{"gpu_copy h2d GPU2": 26.0}`."""
    found = [record("memory", "local", f"node{node}", 412.0 + node, threads=48, local=True) for node in (0, 1)]
    found += [
        record("memory", "remote", name, 151.0, threads=48, local=False) for name in ("node0→node1", "node1→node0")
    ]
    for number in range(gpus):
        gpu = f"GPU{number}"
        for metric, local, far in (("h2d", 54.2, 53.1), ("d2h", 53.6, 53.0)):
            found.append(record("gpu_copy", metric, gpu, local + number / 20, local=True, numa_node=number // 4))
            found.append(record("gpu_copy", metric, gpu, far + number / 20, local=False, numa_node=1 - number // 4))
        found.append(record("gpu_memory", "device_copy", gpu, 4257.0 + 2 * number))
        found.append(record("gpu_latency", "launch", gpu, 6.1 + number / 50, "µs", "lower"))
        found.append(record("gemm", "bf16", gpu, 739.0 + 9 * number, "TFLOP/s", n=8192, data="random"))
    pairs = [(one, other) for one in range(gpus) for other in range(gpus) if one != other]
    found += [
        record("gpu_p2p", "p2p", f"GPU{one}→GPU{other}", 393.0 + (one + other) / 10, peer_access=True)
        for one, other in pairs
    ]
    for name, sizes in COLLECTIVES.items():
        found += [
            record("nccl", name, f"{gpus} GPUs", busbw, size=size, in_place=False, **NCCL)
            for size, busbw in sizes.items()
        ]
    return [_planted(each, planted) for each in found]


def _planted(each, planted):
    name = f"{each['measurement']} {each['metric']} {each['subject']}"
    return {**each, "samples": [planted[name]] * 5} if name in planted else each


def read(records, host="gpu1"):
    return figures.merged(figures.read(host, each) for each in records)


class Player:
    """Plays records as `measuring.measure` would yield them: for each host a list of runs, the last one again and again.

    Of each run it passes on what the plan asks for, and keeps the plans. `others`: for each host what it says that others did
    during each run, the last one again and again.
    """

    def __init__(self, others=None, **runs):
        self.runs, self.others, self.plans = runs, others or {}, []

    def __call__(self, targets, plan_for, _reach):
        for target in targets:
            plan = plan_for(target)
            self.plans.append((target.name, plan))
            waiting = self.runs[target.name]
            run = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            if isinstance(run, Exception):
                yield target, Ended(run, 1.0)
                continue
            names = {each["name"] for each in plan["measurements"]}
            for each in run:
                if each["measurement"] in names:
                    yield target, {"step": {"measurement": each["measurement"], "text": "at work"}}
                    yield target, {"record": each}
            told = self.others.get(target.name, [{}])
            others = told.pop(0) if len(told) > 1 else told[0]
            for name in names:
                yield target, {"done": {"measurement": name, "seconds": 1.0, "left": [], "others": others}}
            yield target, {"end": {"seconds": 1.0}}
            yield target, Ended(None, 1.0)


def kept(found, folder, on=None):
    """A baseline of these figures, saved and read again."""
    path = folder / "site.json"
    document = baseline.document((on or h200(), each) for each in found)
    path.write_text(json.dumps({"schema": baseline.SCHEMA, "figures": document}))
    return baseline.read(path)


def recorded(run, host="gpu1"):
    """What a real node with two H200s sent in one of six runs."""
    text = (HERE / "data" / "recordings" / "verify" / f"h200-x2-run{run}.jsonl").read_text()
    return [figures.read(host, json.loads(line)) for line in text.splitlines()]


def targets(*names):
    return [Target(name) for name in names]
