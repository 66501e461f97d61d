"""Fact documents from hosts are hostile until they have been read: bounded, escaped, typed."""

import json

import jsonschema
import pytest

from nodetune.api.model import Absent, Each, HostFacts, Unread, Value
from nodetune.facts import document
from nodetune.facts.document import FactsError
from nodetune.foundation import file_io, paths
from nodetune.onhost import layout

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
    assert document.from_data(json.loads(document.dump(FACTS))) == FACTS


def test_a_written_document_keeps_to_the_published_schema():
    schema = json.loads(paths.bundled("data/schemas").joinpath("facts.json").read_text())
    jsonschema.validate(json.loads(document.dump(FACTS)), schema)


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
    with pytest.raises(FactsError):
        document.from_data(data)


def nested(levels):
    return json.loads("[" * levels + "]" * levels)


def test_a_value_that_is_nested_too_deeply_is_unread_alone():
    found = document.from_data({"facts": {"a": {"value": nested(50)}, "b": {"value": nested(5)}}}).facts
    assert found == {"a": Unread("not understood: at most 12 levels are expected"), "b": Value(nested(5))}


@pytest.mark.parametrize("member", ["about", "failed", "stuck", "host", "schema"])
def test_a_document_whose_head_is_nested_too_deeply_is_refused(member):
    head = {"about": {"time": nested(900)}, "failed": {"gpu": nested(900)}, "stuck": [nested(900)]}
    text = json.dumps({"facts": {"a.b": {"value": 1}}, member: head.get(member, nested(900))})
    for written in (text, layout.text({"about": {}, **json.loads(text)})):
        with pytest.raises(FactsError) as caught:
            deep_in_the_stack(lambda written=written: document.read(written.encode(), "here"))
        assert "\n" not in str(caught.value)


def deep_in_the_stack(work, frames=200):
    return work() if not frames else deep_in_the_stack(work, frames - 1)


ODD = {
    "as one line": lambda text: json.dumps(json.loads(text)),
    "indented": lambda text: json.dumps(json.loads(text), indent=3),
    "two facts in a line": lambda text: text.replace(',\n  "a.d"', ', "a.d"'),
    "a fact over two lines": lambda text: text.replace("[1]}", "[1],\n  }").replace(",\n  }", "\n  }"),
    "a list over two lines": lambda text: text.replace("[1]", "[1\n]"),
    "a comma at the end of a line inside of a fact": lambda text: text.replace(', "GPU1"', ',\n  "GPU1"'),
    "an escaped name": lambda text: text.replace('"a.b"', '"a\\u002eb"'),
    "space before the colon": lambda text: text.replace('"a.b":', '"a.b" :'),
    "no space after the colon": lambda text: text.replace('"a.b": ', '"a.b":'),
    "a fact twice, the last of which holds": lambda text: text.replace('  "a.b"', '  "a.b": {"value": 5},\n  "a.b"'),
    "other facts before, the last of which hold": lambda text: text.replace("{", '{"facts": {"z": {"value": 1}},', 1),
    "a byte order mark": lambda text: "\ufeff" + text,
    "no end of line at the end": lambda text: text.rstrip(),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_a_document_says_the_same_however_it_is_laid_out(change):
    text = document.dump(FACTS)
    changed = change(text)
    assert changed != text
    assert document.read(changed.encode(), "here") == FACTS


def names_in(text):
    """None for what is refused."""
    try:
        return set(document.read(text.encode(), "here").facts)
    except FactsError:
        return None


UNUSUAL = ("x\x1b[31m", "x\u009b2J\u202e", 'a"b', "a\\u002eb", "\n")


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_one_document_says_never_depends_on_those_before_it(name):
    whole = json.dumps({"facts": {name: {"value": 1}}})
    lines = f'{{\n "host": "x",{layout.FACTS}  "{name}": {{"value": 1}}{layout.END}'
    told = [names_in(text) for text in (lines, whole, lines, whole)]
    assert told[:2] == told[2:]
    assert not any(set("".join(names)) & set("\x1b\x9b\u202e\n") for names in told if names)


BEYOND = 100_000
"""Levels that no Python reads."""
BROKEN = {
    "no comma before the facts": lambda text: text.replace(',\n "facts"', '\n "facts"'),
    "nothing but a comma before the facts": lambda text: "{," + text[text.index('\n "facts"') :],
    "no comma between facts": lambda text: text.replace(",\n", "\n"),
    "a comma after the last fact": lambda text: text.replace("\n }\n}", ",\n }\n}"),
    "a number that is none": lambda text: text.replace('{"value": 0}', '{"value": NaN}'),
    "a number beyond all": lambda text: text.replace('{"value": 0}', '{"value": 1e400}'),
    "a fact of no kind": lambda text: text.replace('{"value": 0}', '{"worth": 0}'),
    "a fact nested beyond all": lambda text: text.replace('{"value": 0}', f'{{"value": {"[" * BEYOND}{"]" * BEYOND}}}'),
    "another version": lambda text: text.replace("facts/1", "facts/9"),
    "cut off": lambda text: text[:-4],
    "an unfinished line": lambda text: text.replace('{"value": 0}', '{"value": 0'),
    "more behind a fact": lambda text: text.replace('{"value": 0}', '{"value": 0} x'),
    "not UTF-8": lambda text: text.replace("permission", "\udcff"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_document_is_refused_in_one_line_that_names_it(change):
    with pytest.raises(FactsError, match="^here: ") as caught:
        document.read(change(document.dump(FACTS)).encode("utf-8", "surrogateescape"), "here")
    assert "\n" not in str(caught.value)


def test_an_unprintable_name_is_harmless_in_a_line():
    written = document.dump(FACTS).replace('"a.b"', '"a\u202eb"')
    one, other = document.read(written.encode(), "here"), document.from_data(json.loads(written))
    assert one == other
    assert not any("\u202e" in name for name in one.facts)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 10_000, "NaN", "1e400", "{", "\x00", b"\xff\xfe\x00"])
def test_json_that_would_hurt_is_one_line(text):
    with pytest.raises(FactsError) as caught:
        document.parse(text, "here")
    assert "\n" not in str(caught.value)


def test_names_and_reasons_cannot_reach_the_terminal():
    host = document.from_data({"host": "a\x1b[31mb\n", "facts": {"x\x1b]0;": {"unread": "\x9b31m\u202e"}}})
    shown = host.host + "".join(host.facts) + str(host.facts)
    assert shown.startswith("a")
    assert not set(shown) & set("\x1b\x9b\u202e\n")


@pytest.mark.parametrize("host", ["../../etc/passwd", "/abs", "..", "", ".hidden", "a/b", "x" * 5000, "a\x00b"])
def test_a_host_name_cannot_leave_the_folder(host):
    name = document.file_name(host, set())
    assert "/" not in name
    assert not name.startswith(".")
    assert "\x00" not in name
    assert len(name) < 120


@pytest.mark.parametrize("host", ["計" * 100, "é" * 51, "\U0001f680" + "x" * 300, "節" * 5000, "\ud800" * 200])
def test_a_fact_file_is_written_however_long_the_host_name_is(tmp_path, host):
    taken = {document.file_name(host, set())}
    path = tmp_path / document.file_name(host, taken)
    file_io.write(path, "{}")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_long_names_that_differ_at_the_end_have_different_files():
    first, second = document.file_name("計" * 100 + "1", set()), document.file_name("計" * 100 + "2", set())
    assert first != second
    assert first == document.file_name("計" * 100 + "1", {second})
    assert document.file_name("g" * 100, set()) == "g" * 100 + ".json"


def test_two_hosts_never_share_a_file():
    first = document.file_name("a/b", set())
    assert document.file_name("a_b", {first}) != first


def test_anonymous_facts_keep_the_shape_and_lose_the_identity():
    facts = document.from_data(
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
    text = document.dump(document.anonymous(facts))
    for secret in ("1654321", "8d:12:34", "8d:1234", "10.1.2.3", "secret-node"):
        assert secret not in text
    assert "580.159.04" in text
    assert "13.580.159.04" in text


@pytest.mark.parametrize(
    "secret",
    [
        "0c:42:a1:8d:12:34",
        "0C:42:A1:8D:12:34",
        ":".join(["80"] * 20),
        "10.1.2.3",
        "fe80:0000:0000:0000:0e42:a1ff:fe8d:1234",
        "4c4c4544-0044-4810-8031-b4c04f4d3533",
    ],
)
def test_an_address_inside_a_text_is_removed(secret):
    facts = document.from_data({"facts": {"cmdline.raw": {"value": f"quiet for={secret} ro"}}})
    text = document.dump(document.anonymous(facts))
    assert secret not in text
    assert "quiet for=0" in text


def test_a_folder_without_fact_files_says_so(tmp_path):
    with pytest.raises(FactsError, match="no \\*.json file"):
        document.files(tmp_path)
