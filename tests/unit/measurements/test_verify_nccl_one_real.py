"""NCCL on one real GPU: a communicator of one rank, which moves data within the GPU. Skipped where there is none.

It shows that calls, streams and events of the measurements work with the installed NCCL, and that NCCL loads the tuner plugin;
it says nothing of links. python3 -m pytest --noconftest -c /dev/null tests/unit/measurements/test_verify_nccl_one_real.py
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import nccl_ranks

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "nodetune" / "data" / "tuner" / "nodetune_tuner.c"

pytestmark = [
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="it takes a GPU"),
    pytest.mark.xdist_group("real GPUs"),
]


def alone(kind, options, **env):
    """What one rank tells of each case, in a process of its own."""
    (found,) = nccl_ranks.told(kind, options, [env])
    return found


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
