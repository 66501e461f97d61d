"""How verify asks for NCCL with a GEMM, and shows it: by size, and with the words that measure it again."""

from nodetune.verify import figures, hardware_limits
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records


def figure(metric, size, unit="GB/s"):
    return figures.of(
        "gpu1", figures.record(verify_records.record("nccl_overlap", metric, "8 GPUs", 300.0, unit, size=size))
    )


def test_it_runs_only_if_asked_and_with_the_named_library():
    assert "nccl_overlap" not in [
        item["name"] for suite in ("quick", "full", "nccl") for item in SuiteRequest(suite).items
    ]
    wanted = SuiteRequest("full", only=("nccl_overlap",), nccl="/opt/nccl", nccl_tests="/opt/tests", gpus=(0, 1))
    (item,) = wanted.items
    assert item["options"] == {"gpus": [0, 1], "nccl": "/opt/nccl"}
    assert wanted.words_for("nccl_overlap", together=True) == [
        "--only", "nccl_overlap", "--nccl", "/opt/nccl", "--multi-node",
    ]  # fmt: skip


def test_sizes_are_told_apart_and_compared_only_with_themselves():
    small, large = (figure("all_reduce_with_gemm", size) for size in (64 << 20, 1 << 30))
    assert figures.title(small) == "nccl_overlap all_reduce_with_gemm 64 MiB"
    assert figures.kind(small) != figures.kind(large)


def test_no_limit_of_a_link_or_of_the_tensor_cores_is_claimed():
    for each in (figure("all_reduce_with_gemm", 1 << 30), figure("gemm_with_all_reduce", 1 << 30, "TFLOP/s")):
        assert hardware_limits.of(each, verify_records.h200()) is None
