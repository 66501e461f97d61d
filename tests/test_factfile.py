"""Fact documents from hosts are hostile until they have been read: bounded, escaped, typed."""

import json

import jsonschema
import pytest

from nodetune import factfile, paths, whole
from nodetune.factfile import BadFacts
from nodetune.model import Absent, Each, HostFacts, Unread, Value

FACTS = HostFacts(
    "gpu001",
    {
        "a.b": Value(0),
        "a.c": Absent("no such file"),
        "a.d": Unread("permission denied"),
        "a.e": Each({"GPU0": Value([1]), "GPU1": Absent("x")}),
    },
    {"uid": 0, "failed": {}, "stuck": []},
)


def test_a_document_survives_being_written_and_read():
    assert factfile.from_data(json.loads(factfile.dump(FACTS))) == FACTS


def test_a_written_document_keeps_to_the_published_schema():
    schema = json.loads(paths.bundled("schemas").joinpath("facts.json").read_text())
    jsonschema.validate(json.loads(factfile.dump(FACTS)), schema)


@pytest.mark.parametrize(
    "data",
    [
        [],
        None,
        5,
        "facts",
        {},
        {"facts": []},
        {"facts": {"a": 5}},
        {"facts": {"a": {}}},
        {"facts": {"a": {"value": 1, "absent": ""}}},
        {"facts": {"a": {"each": {"x": {"each": {}}}}}},
        {"facts": {"a": {"each": []}}},
        {"facts": {}, "schema": "other/9"},
        {"facts": {}, "about": []},
        {"facts": {}, "failed": []},
        {"facts": {}, "stuck": {}},
    ],
)
def test_what_is_no_fact_document_is_refused(data):
    with pytest.raises(BadFacts):
        factfile.from_data(data)


def test_nesting_is_bounded():
    deep = 1
    for _ in range(50):
        deep = [deep]
    with pytest.raises(BadFacts, match="nested too deeply"):
        factfile.from_data({"facts": {"a": {"value": deep}}})


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 10_000, "NaN", "1e400", "{", "\x00", b"\xff\xfe\x00"])
def test_json_that_would_hurt_is_one_line(text):
    with pytest.raises(BadFacts) as caught:
        factfile.parse(text, "here")
    assert "\n" not in str(caught.value)


def test_names_and_reasons_cannot_reach_the_terminal():
    host = factfile.from_data({"host": "a\x1b[31mb\n", "facts": {"x\x1b]0;": {"unread": "\x9b31m\u202e"}}})
    shown = host.host + "".join(host.facts) + str(host.facts)
    assert not set(shown) & set("\x1b\x9b\u202e\n")


@pytest.mark.parametrize("host", ["../../etc/passwd", "/abs", "..", "", ".hidden", "a/b", "x" * 5000, "a\x00b"])
def test_a_host_name_cannot_leave_the_folder(host):
    name = factfile.file_name(host, set())
    assert "/" not in name
    assert not name.startswith(".")
    assert "\x00" not in name
    assert len(name) < 120


@pytest.mark.parametrize("host", ["計" * 100, "é" * 51, "\U0001f680" + "x" * 300, "節" * 5000, "\ud800" * 200])
def test_a_fact_file_can_be_written_whatever_the_length_of_the_hosts_name_in_bytes(tmp_path, host):
    taken = {factfile.file_name(host, set())}
    path = tmp_path / factfile.file_name(host, taken)
    whole.write(path, "{}")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_long_names_that_differ_at_their_end_have_files_that_differ_and_always_the_same_ones():
    first, second = factfile.file_name("計" * 100 + "1", set()), factfile.file_name("計" * 100 + "2", set())
    assert first != second
    assert first == factfile.file_name("計" * 100 + "1", {second})
    assert factfile.file_name("g" * 100, set()) == "g" * 100 + ".json"


def test_two_hosts_never_share_a_file():
    first = factfile.file_name("a/b", set())
    assert factfile.file_name("a_b", {first}) != first


def test_anonymous_facts_keep_the_shape_and_lose_the_identity():
    facts = factfile.from_data(
        {
            "facts": {
                "gpu.serial": {"each": {"GPU0": {"value": "1654321"}}},
                "gpu.driver_version": {"value": "580.159.04"},
                "gpu.nvml_version": {"value": "13.580.159.04"},
                "rdma.gids": {"value": ["fe80:0000:0000:0000:0e42:a1ff:fe8d:1234"]},
                "net.links": {"value": {"eth0": {"address": "0c:42:a1:8d:12:34", "via": "10.1.2.3"}}},
                "host.hostname": {"value": "secret-node"},
            }
        }
    )
    text = factfile.dump(factfile.anonymous(facts))
    for secret in ("1654321", "8d:12:34", "8d:1234", "10.1.2.3", "secret-node"):
        assert secret not in text
    assert "580.159.04" in text
    assert "13.580.159.04" in text


def test_a_folder_without_fact_files_says_so(tmp_path):
    with pytest.raises(BadFacts, match="no \\*.json file"):
        factfile.files(tmp_path)
