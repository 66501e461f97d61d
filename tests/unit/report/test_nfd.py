"""Labels for Node Feature Discovery: one object a node that was reached, and nothing that a host can forge."""

import io
import json

from nodetune.report import nfd
from tests.support.reporting import finding, hostile, result


def written(*results):
    stream = io.StringIO()
    nfd.write(results, stream)
    return {each["metadata"]["labels"][nfd.NODE]: labels(each) for each in json.loads(stream.getvalue())["items"]}


def labels(feature):
    return {name.removeprefix(nfd.PREFIX): value for name, value in feature["spec"]["labels"].items()}


def test_a_node_is_labelled_by_its_worst_finding():
    found = written(
        result("gpu-1", finding(severity="low"), finding("edac", "critical"), finding("thp", "critical", "waived")),
        result("gpu-2", finding("thp", "critical", "waived")),
        result("gpu-3", finding("edac", "high", "unknown")),
    )
    assert found == {
        "gpu-1": {"compliant": "false", "worst-finding": "critical"},
        "gpu-2": {"compliant": "true", "worst-finding": "none"},
        "gpu-3": {"compliant": "false", "worst-finding": "none"},
    }


def test_a_node_that_was_not_reached_keeps_its_labels():
    assert written(result("gpu-1", state="unreachable")) == {}


def test_a_host_cannot_name_another_object():
    assert written(*hostile()) == {}
