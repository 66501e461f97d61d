"""The mix of a job from the output of NCCL's inspector, whose lines are those of its README in NCCL 2.30.7, and from its debug log."""

import json

import pytest

from nodetune.foundation import UserError
from nodetune.tune.benches import nccl_profile


def line(name, size, time, **more):
    return {
        "header": {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1},
        "metadata": {"inspector_output_format_version": "v4.0", "rec_mechanism": "nccl_profiler_interface"},
        "coll_perf": {"coll": name, "coll_sn": 1407, "coll_msg_size_bytes": size, "coll_exec_time_us": time, **more},
    }


@pytest.fixture
def profile(tmp_path):
    def read(*given):
        path = tmp_path / "inspector.log"
        path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in given))
        return nccl_profile.read(path)

    return read


def test_sizes_are_those_with_the_most_time_not_the_most_calls(profile):
    small = [line("AllReduce", 4096, 12)] * 100
    found = profile(*small, line("AllReduce", 17179869184, 61974), line("ReduceScatter", 2147483648, 41057))
    assert found.collectives == ("all_reduce", "reduce_scatter")
    assert found.sizes == (2147483648, 17179869184)
    assert found.share == pytest.approx((61974 + 41057) / (61974 + 41057 + 1200), abs=0.001)


def test_sizes_near_each_other_are_one(profile):
    found = profile(line("AllGather", 100_000_000, 500), line("AllGather", 140_000_000, 500))
    assert found.sizes == (134217728,)
    assert found.share == 1.0


def test_of_many_sizes_the_four_that_cost_most_stay(profile):
    found = profile(*[line("AllReduce", 1 << n, n) for n in range(20, 30)])
    assert found.sizes == (1 << 26, 1 << 27, 1 << 28, 1 << 29)
    assert 0 < found.share < 1


def test_other_lines_and_half_a_line_do_not_matter(profile):
    p2p = {"p2p_perf": {"p2p": "Send", "p2p_msg_size_bytes": 8}}
    whole = line("AllReduce", 1 << 28, 900)
    bad = [line("AllReduce", -1, 5), line("AllReduce", "8", 5), line("AllReduce", 1 << 60, 5), line("Gossip", 8, 5)]
    found = profile(p2p, whole, *bad, line("AllReduce", 8, True), "[" * 5000, json.dumps(whole)[:70], "null", "7")
    assert found.sizes == (1 << 28,)


@pytest.mark.parametrize("given", ["", 'nccl_bus_bandwidth_gbs{collective="AllReduce"} 678.263'])
def test_a_file_without_any_is_named(profile, given):
    with pytest.raises(UserError, match=r"inspector.log: no all-reduce"):
        profile(given)


def test_a_folder_of_files_adds_up(tmp_path):
    for rank in range(2):
        (tmp_path / f"node{rank}.log").write_text(json.dumps(line("AllReduce", 1 << (20 + rank), 10)) + "\n")
    assert nccl_profile.read(tmp_path).sizes == (1 << 20, 1 << 21)


def logged(name, count, kind, ranks=4):
    """A line of NCCL 2.28.9 with NCCL_DEBUG_SUBSYS=COLL."""
    return (
        f"gpu1:4242:4291 [0] NCCL INFO {name}: opCount 1f sendbuff 0x7f2a8e000000 recvbuff 0x7f2a90000000 count {count} "
        f"datatype {kind} op 0 root 0 comm 0x55d0c0a3d2f0 [nranks={ranks}] stream 0x55d0bf6a5c60"
    )


def test_the_debug_log_counts_calls_by_their_bytes(profile):
    large = [logged("AllReduce", 64 << 20, 7)] * 10
    shares = [logged("AllGather", 32 << 20, 9)] * 10
    found = profile("gpu1:4242:4291 [0] NCCL INFO Bootstrap: Using eth0", *large, *shares, logged("AllReduce", 2, 7))
    assert found.weights.keys() == {("all_reduce", 1 << 28), ("all_gather", 1 << 28)}
    assert found.weights["all_reduce", 1 << 28] == pytest.approx(found.weights["all_gather", 1 << 28])
    assert found.share > 0.99


def test_many_small_calls_weigh_as_their_launches(profile):
    found = profile(*[logged("AlltoAll", 4096, 7)] * 300, logged("AllReduce", 64 << 20, 7))
    assert found.collectives == ("alltoall", "all_reduce")
    assert 0.6 < found.weights["alltoall", 1 << 16] < 0.75


def test_lines_of_the_log_that_make_no_sense_do_not_matter(profile):
    bad = [
        logged("AllReduce", 8, 99),
        logged("Gossip", 8, 7),
        logged("AllReduce", 1 << 40, 7),
        logged("AllGather", "x", 7),
    ]
    assert profile(*bad, logged("ReduceScatter", 1 << 20, 6, 2)).weights == {("reduce_scatter", 1 << 22): 1.0}
