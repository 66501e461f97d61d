"""NCCL on one real GPU: a communicator of one rank, which moves data within the GPU. Skipped where there is none.

It shows that calls, streams and events of the measurements work with the installed NCCL, and that NCCL loads the tuner plugin;
it says nothing of links. python3 -m pytest --noconftest -c /dev/null tests/unit/measurements/test_verify_nccl_one_real.py
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "nodetune" / "data" / "tuner" / "nodetune_tuner.c"

pytestmark = [
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="it takes a GPU"),
    pytest.mark.xdist_group("real GPUs"),
]

ALONE = """
import json, sys, time
from nodetune.measurements import nccl, nccl_api, nccl_log, nccl_overlap, nccl_rank

class Tell:
    problem = None
    def step(self, text): pass
    def say(self, kind, content=None): pass
    def skip(self, reason, subject=None, metric=None): self.problem = reason
    failed = skip

kind, options = json.loads(sys.argv[1])
asked = nccl.checked(options)
cases = list(nccl.planned(asked, 1))
log = nccl_log.LogFile()
job = dict(asked, rank=0, ranks=1, gpu="GPU0", cases=cases, until=time.monotonic() + 100)
rank = {"nccl": nccl_rank.Rank, "nccl_overlap": nccl_overlap.Rank}[kind](job, nccl_api.load(), log, Tell())
rank.prepare()
rank.join(rank.identity())
done = [dict(rank.case(case), size=case["size"], name=case["name"]) for case in cases]
log._file.seek(0)
print(json.dumps({"done": done, "log": log._file.read().decode("utf-8", "replace"), "nccl": rank.nccl.version}))
"""


def alone(kind, options, **env):
    """What one rank tells of each case, in a process of its own."""
    command = [sys.executable, "-c", ALONE, json.dumps([kind, options])]
    given = {**os.environ, "NCCL_NVLS_ENABLE": "0", **env}
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_small_messages_take_microseconds_with_the_right_data():
    options = {"sizes": [64 << 20], "collectives": ["all_reduce"], "in_place": False, "latency_sizes": [8, 65536]}
    done = alone("nccl", options)["done"]
    assert [(case["name"], case["size"]) for case in done] == [
        ("all_reduce", 8),
        ("all_reduce", 65536),
        ("alltoall", 65536),
        ("all_reduce", 64 << 20),
    ]
    assert all(case["wrong"] == 0 and min(case["seconds"]) > 0 for case in done)
    assert max(done[0]["seconds"]) < min(done[-1]["seconds"]) + 1e-3


def test_a_product_and_a_collective_share_the_gpu():
    options = {"sizes": [1 << 30], "collectives": ["all_reduce"], "in_place": False, "repeats": 3}
    (case,) = alone("nccl_overlap", options)["done"]
    assert case["wrong"] == 0
    assert len(case["seconds"]) == len(case["gemm"]) == 3
    assert 0 < max(case["gemm"]) < 1.1 * case["gemm_alone"]
    assert min(case["seconds"]) > 0.9 * case["alone"], "a copy is not faster while the GPU computes"


@pytest.mark.skipif(not shutil.which("gcc"), reason="the plugin is built with gcc")
def test_nccl_loads_the_tuner_plugin_and_names_its_rows(tmp_path):
    library, rows = tmp_path / "libnodetune-tuner.so", tmp_path / "rows.csv"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", library, PLUGIN], check=True)
    rows.write_text("allreduce,0,-1,ring,-1,-1,-1\n")
    options = {"sizes": [1 << 20], "collectives": ["all_reduce"], "in_place": False}
    found = alone("nccl", options, NCCL_TUNER_PLUGIN=str(library), NODETUNE_TUNER_FILE=str(rows))
    assert "nodetune" in found["log"], found["log"][-3000:]
    assert f"1 rows of {rows}" in found["log"]
    assert found["done"][0]["wrong"] == 0
