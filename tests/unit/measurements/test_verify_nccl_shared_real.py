"""Real NCCL between two ranks that share one GPU: posed as two hosts (NCCL_HOSTID), they go over TCP sockets of the loopback.

It shows what NCCL chooses, with and without the tuner plugin, and that data come out right. Speed says nothing: the GPU
gives each rank its time in turn. python3 -m pytest --noconftest -c /dev/null tests/unit/measurements/test_verify_nccl_shared_real.py
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import nccl_ranks

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "nodetune" / "data" / "tuner" / "nodetune_tuner.c"
SIZES = [64 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20]

pytestmark = [
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="it takes a GPU"),
    pytest.mark.xdist_group("real GPUs"),
]


def both(kind, options, **env):
    """What rank 0 tells of each case: NCCL logs its choices there only. Both have checked the data."""
    posed = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", **env}
    first, second = nccl_ranks.told(kind, options, [{"NCCL_HOSTID": f"posed-{number}", **posed} for number in (0, 1)])
    assert [case["wrong"] for case in (*first["done"], *second["done"])] == [0] * 2 * len(first["done"])
    return first


def chosen(found):
    return {case["size"]: case["chosen"] for case in found["done"]}


@pytest.fixture(scope="module")
def default():
    """What NCCL chooses for all-reduces by itself."""
    found = both("nccl", {"sizes": SIZES, "collectives": ["all_reduce"], "in_place": False, "repeats": 3})
    assert all(found for found in chosen(found).values()), found["log"][-3000:]
    return found


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("the plugin is built with gcc")
    path = tmp_path_factory.mktemp("tuner") / "libnodetune-tuner.so"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", path, PLUGIN], check=True)
    return path


@pytest.fixture
def tuned(library, tmp_path):
    """tuned(rows): what NCCL does with the plugin and these rows, of which `fit` are for two ranks on two nodes."""

    def run(rows, fit=None):
        file = tmp_path / "rows.csv"
        file.write_text("".join(f"{row}\n" for row in rows))
        env = {"NCCL_TUNER_PLUGIN": str(library), "NODETUNE_TUNER_FILE": str(file)}
        asked = {"sizes": SIZES, "collectives": ["all_reduce"], "in_place": False, "repeats": 3}
        found = both("nccl", asked, **env)
        assert f"{len(rows) if fit is None else fit} rows of {file}" in found["log"], found["log"][-3000:]
        return found

    return run


def test_every_collective_comes_out_right_over_sockets():
    names = ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"]
    found = both("nccl", {"sizes": [1 << 20], "collectives": names, "repeats": 2})
    assert {case["name"] for case in found["done"]} == set(names)
    assert all(via.startswith("NET/Socket") for case in found["done"] for via in case["path"]["via"]), found["log"]


def test_without_a_fitting_row_nccl_chooses_as_without_the_plugin(tuned, default):
    elsewhere = ["allreduce,0,-1,tree,-1,16,128", "broadcast,0,-1,ring,2,-1,-1", "allreduce,1,1000,tree,1,-1,-1"]
    assert chosen(tuned(elsewhere, fit=2)) == chosen(default)


def test_a_row_decides_its_sizes_and_no_others(tuned, default):
    others = {size: how for size, how in chosen(default).items() if size not in SIZES[1:3]}
    for algorithm in ("ring", "tree"):
        found = chosen(tuned([f"allreduce,{SIZES[1]},{SIZES[2]},{algorithm},-1,2,2"]))
        assert [found[size]["algorithm"].lower() for size in SIZES[1:3]] == [algorithm] * 2
        assert {size: found[size] for size in others} == others


def test_channels_of_a_row_are_those_that_run(tuned, default):
    most = max(how["channels"] for how in chosen(default).values())
    found = chosen(tuned([f"allreduce,{SIZES[3]},-1,ring,1,-1,-1"]))
    assert most > 1, "one channel is what NCCL takes anyway"
    assert [found[size]["channels"] for size in SIZES[3:]] == [1, 1]
    assert found[SIZES[0]] == chosen(default)[SIZES[0]]


def test_a_product_and_a_collective_of_two_ranks_share_the_gpu():
    options = {"sizes": [64 << 20], "collectives": ["all_reduce"], "in_place": False, "repeats": 3}
    (case,) = both("nccl_overlap", options)["done"]
    assert len(case["seconds"]) == len(case["gemm"]) == 3
    assert min(case["seconds"]) > 0 and min(case["gemm"]) > 0
