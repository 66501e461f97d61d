"""Which documents can be compared as audits."""

import pytest

from nodetune.api.model import SEVERITIES
from nodetune.audit import compare
from nodetune.audit.document import WORDS
from nodetune.foundation import json_document

FINDING = {**dict.fromkeys(WORDS, ""), "severity": SEVERITIES[0], "subjects": {}}
HOST = {"name": "gpu1", "state": "ok", "findings": [FINDING, FINDING]}


@pytest.mark.parametrize("hosts", [[], [HOST], [HOST, {**HOST, "name": "gpu2"}], [{**HOST, "findings": []}]])
def test_a_complete_audit_is_taken_as_it_is(hosts):
    data = {"hosts": hosts}
    assert compare.checked(data, "a.json") is data


@pytest.mark.parametrize(
    "data",
    [
        7,
        {},
        {"hosts": {}},
        {"hosts": [7]},
        {"hosts": [{**HOST, "name": 7}]},
        {"hosts": [{**HOST, "findings": None}]},
        {"hosts": [{**HOST, "findings": [7]}]},
        {"hosts": [HOST, {**HOST, "findings": [{**FINDING, "severity": "bad"}]}]},
        {"hosts": [{**HOST, "findings": [{**FINDING, "subjects": []}]}]},
        {"hosts": [{**HOST, "findings": [{**FINDING, "status": None}]}]},
    ],
)
def test_what_is_no_complete_audit_is_refused(data):
    with pytest.raises(json_document.DocumentError, match="a.json: not a complete audit document: write one with"):
        compare.checked(data, "a.json")
