"""The share of a rate that remains when more GPUs take part, from two results."""

import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from nodetune.report.text import verify_changes
from nodetune.verify import document
from nodetune.verify.scaling import scaling
from tests.support import verify_records as records

SCHEMA = Path(document.__file__).parents[1] / "data" / "schemas" / "compare.json"


def measured(nodes, rate, metric="all_reduce", unit="GB/s", **about):
    told = {"nccl": "2.28.9", "gpus": 8 * nodes, "nodes": nodes, "size": 1 << 30, "dtype": "float32", **about}
    (found,) = records.read([records.record("nccl", metric, f"{nodes} nodes of 8 GPUs", rate, unit=unit, **told)])
    return found


def test_twice_as_many_hosts_keep_a_share_of_the_rate():
    (found,) = scaling([measured(2, 400.0)], [measured(4, 360.0)])
    assert found.efficiency == pytest.approx(0.9)
    out = io.StringIO()
    verify_changes.print_changes(out, [], scaled=[found])
    printed = " ".join(out.getvalue().split())
    assert "2 nodes of 8 GPUs → 4 nodes of 8 GPUs 400.0 → 360.0 GB/s (90%)" in printed
    assert "no figures in common" not in printed
    whole = json.loads(json.dumps(document.compared([], scaled=[found])))
    jsonschema.validate(whole, json.loads(SCHEMA.read_text()))
    assert whole["scaling"][0]["efficiency"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    "other",
    [
        measured(2, 360.0),
        measured(4, 360.0, size=1 << 20),
        measured(4, 360.0, metric="all_gather"),
        measured(4, 360.0, dtype="bfloat16"),
        replace(measured(4, 360.0), measurement="rdma"),
        measured(4, 90.0, unit="µs"),
        measured(4, 360.0, gpus="32"),
    ],
)
def test_figures_that_differ_in_anything_else_do_not_scale(other):
    assert scaling([measured(2, 400.0, unit=other.unit)], [other]) == []
