"""An audit document read host by host says what it says read as a whole; what is laid out otherwise is left to that."""

import io
import json

import pytest

from nodetune.audit import document as audit
from nodetune.audit import document_reader as audit_reader
from tests.support import reporting
from tests.support.reporting import finding, fixable, result

ALIKE = finding(subjects={"GPU0": "x"})


def written(results):
    stream = io.StringIO()
    audit.write_audit(results, stream)
    return stream.getvalue()


AUDITS = {
    "one host": [result("a", ALIKE, fixable())],
    "some": [result("a", ALIKE, finding("b", status="pass")), result("b", ALIKE), result("c", state="refused")],
    "no findings anywhere": [result("a"), result("b")],
    "not reached only": [result("a", state="refused"), result("b", state="dropped")],
    "misleading": [
        result(text, finding(reason=text)) for text in ("\n  },\n  {", '"findings": [', '\n ],\n "fleet": ')
    ],
    "hostile": reporting.hostile(),
}


@pytest.mark.parametrize("block", [7, 1000, audit_reader.BLOCK])
@pytest.mark.parametrize("results", AUDITS.values(), ids=AUDITS)
def test_host_by_host_it_says_the_same(tmp_path, monkeypatch, results, block):
    path = tmp_path / "audit.json"
    path.write_text(written(results))
    monkeypatch.setattr(audit_reader, "BLOCK", block)
    whole = json.loads(path.read_text())
    del whole["conclusions"], whole["examined"]  # nobody who reads hosts needs them
    assert audit_reader.read(path, {}) == whole


def test_equal_findings_are_one_object(tmp_path):
    known = {}
    for name in ("monday.json", "friday.json"):
        (tmp_path / name).write_text(written([result("a", ALIKE), result("b", ALIKE)]))
    documents = [audit_reader.read(tmp_path / name, known) for name in ("monday.json", "friday.json")]
    assert len({id(host["findings"][0]) for document in documents for host in document["hosts"]}) == 1


OTHERWISE = {
    "nothing": lambda text: "",
    "one line": lambda text: json.dumps(json.loads(text)),
    "indented by two": lambda text: json.dumps(json.loads(text), indent=2),
    "cut off": lambda text: text[:-5],
    "cut off in a host": lambda text: text[: len(text) // 2],
    "a page": lambda text: f"<html>{text}</html>",
    "more behind": lambda text: f"{text}x",
    "NaN": lambda text: text.replace('"seconds": 0.0', '"seconds": NaN'),
    "no hosts": lambda text: written([]),
}


@pytest.mark.parametrize("change", OTHERWISE.values(), ids=OTHERWISE)
def test_another_layout_is_left_to_the_general_reader(tmp_path, change):
    path = tmp_path / "audit.json"
    path.write_text(change(written(AUDITS["some"])))
    assert audit_reader.read(path, {}) is None


def test_a_vast_file_without_hosts_is_given_up_early(tmp_path, monkeypatch):
    monkeypatch.setattr(audit_reader, "MAX_BYTES", 1000)
    monkeypatch.setattr(audit_reader, "BLOCK", 100)
    path = tmp_path / "vast.json"
    path.write_text('{\n "hosts": [\n  {' + "x" * 100_000)
    assert audit_reader.read(path, {}) is None
