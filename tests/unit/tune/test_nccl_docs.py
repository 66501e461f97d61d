"""docs/tune-nccl.md names every variable that is tuned, with the values of the code."""

from pathlib import Path

from nodetune.checks.shared.nccl_table import since, variables
from nodetune.tune.benches.nccl_cases import GUARDS, SIZES
from nodetune.tune.benches.nccl_space import KNOBS

PAGE = (Path(__file__).parents[3] / "docs" / "tune-nccl.md").read_text("utf-8")


def test_the_table_is_that_of_the_code():
    rows = [
        f"| {knob.name} | {since(variables()[knob.name])} | {', '.join(map(str, knob.choices))} | {knob.where} |"
        for knob in KNOBS
    ]
    shown = [line for line in PAGE.splitlines() if line.startswith("| NCCL_")]
    assert shown == rows, "\n".join(rows)


def test_the_objectives_are_those_of_the_code():
    assert SIZES["bandwidth"] == (256 << 20, 1 << 30)
    assert GUARDS["bandwidth"] == (64 << 10, 1 << 20, 16 << 20)
    assert SIZES["overlap"] == (64 << 20, 256 << 20)
    assert (SIZES["latency"], GUARDS["latency"]) == ((8, 512, 4096, 65536), (1 << 20, 64 << 20))
