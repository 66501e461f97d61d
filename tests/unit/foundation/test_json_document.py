"""What all JSON documents share."""

import json

import pytest

from nodetune import __version__
from nodetune.foundation import json_document


def test_a_document_begins_with_its_schema_the_version_and_the_time():
    head = json_document.head("nodetune.audit/1")
    assert list(head) == ["schema", "nodetune", "time"]
    assert (head["schema"], head["nodetune"], type(head["time"])) == ("nodetune.audit/1", __version__, int)


def test_a_document_keeps_the_order_of_its_keys_and_ends_its_last_line():
    written = json_document.text({"b": 1, "a": [2]})
    assert json.loads(written) == {"b": 1, "a": [2]}
    assert written.index('"b"') < written.index('"a"')
    assert written.endswith("}\n")


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": [3]}, {"a": [3]}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": None, "z": 3}}, {"a": {"x": 1, "z": 3}}),
        ({"a": 1}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({}, {"a": {"x": None}, "b": None}, {"a": {}}),
    ],
)
def test_a_patch_is_merged_mapping_by_mapping_and_none_removes(old, new, merged):
    before = json.dumps(old)
    assert json_document.merge(old, new) == merged
    assert json.dumps(old) == before
