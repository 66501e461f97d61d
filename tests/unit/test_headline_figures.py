"""The first table of the page about figures: a row for each thing that decides, with a figure or the reason why there is none."""

import re
import sys
from pathlib import Path

import pytest

from nodetune.cli import main
from nodetune.verify import catalogue

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import headline

NAMED = """
bf16 products | number formats | 2:4 sparse | FP4 | ridge point | GEMV against GEMM | prefill | batches of 1 to 256
multiple of 8 | 10000³ | HBM bandwidth | HBM latency | L2 bandwidth and latency | host to GPU | ordinary memory | while the GPU computes
C2C | NVLink between two GPUs | NVLink 5 | NVLink, each of its links | memory of the near | memory of the far | latency of host memory
copies from the near and the far | 100 Gb/s, TCP | 100 Gb/s, RDMA | TCP round trip | latency of RDMA | tens of µs | CUDA graph | all-reduce
all collectives | small messages | N to 2N | all adapters at once | one root port | waiting for data | training step | of a disk | all hosts at once
disk to the GPU | unpacked | energy | for a watt and for money | MIG | several processes | operating system
"""
"""The headline figures that issues name; a row may be about more, and there may be more rows."""

ROWS = headline.stated()["rows"]


@pytest.mark.parametrize("thing", [each.strip() for each in re.split(r"[|\n]", NAMED) if each.strip()])
def test_each_headline_figure_has_a_row(thing):
    assert [row["item"] for row in ROWS if thing in row["item"]] != []


def test_every_row_has_a_figure_or_a_reason():
    lines = "".join(headline.table()).splitlines()
    assert sum(line.startswith("| ") for line in lines) == len(ROWS) + 2


def test_the_ridge_is_computed_from_the_recording():
    (row,) = [row for row in ROWS if "ratio" in row]
    assert 250 < float(headline._computed(row)) < 300  # 836 TFLOP/s over 3.04 TB/s


@pytest.mark.parametrize("row", [row for row in ROWS if "command" in row], ids=lambda row: row["item"][:40])
def test_each_command_measures_what_its_row_shows(row):
    words = row["command"].split()
    assert words[0] in main.group.list_commands(None)
    assert set(words[2:]) & {*catalogue.measurements(), "nccl"} or words == ["watch"]
    assert {name.split()[0] for name in row.get("figures", ())} <= set(words)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, "swap: needs one of figures, ratio, seen and reason"),
        ({"seen": "1 GB/s", "reason": "none"}, "swap: needs one of"),
        ({"figures": ["discs read"], "recording": "h100-x2"}, "swap: there is no measurement discs"),
        ({"figures": ["disk read"], "recording": "h100-x2"}, "swap: h100-x2 has no figure disk read"),
    ],
)
def test_a_row_that_shows_nothing_is_refused(change, problem):
    with pytest.raises(headline.HeadlineError, match=problem):
        headline._cells({"item": "swap", "command": "verify", **change}, headline.stated()["recordings"])
