"""Answers for agents: how they are kept small, and which hosts and arguments there are. No server runs."""

import json

import pytest

from nodetune.cli import agent_answers as answers
from nodetune.foundation import UserError

pytest.importorskip("mcp")
tools = __import__("nodetune.cli.agent_tools", fromlist=["wrong"])

SCHEMA = {"properties": {"host": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 9}}}


@pytest.mark.parametrize("item", ["x", "\\" * 300, '"' * 300, "ü\u2028" * 200, {"hosts": ["n"] * 99}], ids=range(5))
def test_an_answer_and_its_copy_as_text_fit_and_say_what_is_left_out(item):
    found = answers.fitted({"lines": [item] * 5000, "others": [item] * 5000, "one": "x" * 100}, "lines", 4000)
    text = json.dumps(found)
    assert len(text) + len(json.dumps(text)) <= answers.MAX_BYTES
    assert found["left_out"] == 5000 - len(found["lines"])
    assert f"{found['left_out']} lines" in found["more"]
    assert "others" in found["more"]
    assert answers.fitted({"lines": [item]}, "lines", 20) == {"lines": [item], "left_out": 0}


def test_one_endless_member_is_left_out():
    assert answers.fitted({"lines": ["x" * 30_000]}, "lines", 20)["left_out"] == 1


def test_an_endless_text_is_cut_and_says_so():
    found = answers.whole_lines("a line\n" * 9000)
    assert 2 * len(json.dumps(found)) <= answers.MAX_BYTES
    assert found.endswith("more characters: ask about fewer")


@pytest.mark.parametrize(
    "host", ["@hosts", "a,@/etc/passwd", "~a", "../a", "nope", "b[1-3]", "a[", ",", "!a*", "x" * 200]
)
def test_a_name_that_no_host_has_is_an_error(host, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("a1\n")
    with pytest.raises(UserError, match=r"the 2 hosts are a\[1-2\]") as problem:
        answers.meant(host, ["a1", "a2"])
    assert len(str(problem.value)) < 300


def test_hosts_are_named_one_by_one_by_a_set_or_by_a_pattern():
    known = ["a1", "a2", "b1"]
    meant = [answers.meant(each, known) for each in ("", "a1", "a[1-2]", "a*", "b1,a2")]
    assert meant == [known, ["a1"], ["a1", "a2"], ["a1", "a2"], ["a2", "b1"]]


@pytest.mark.parametrize("given", [{"limit": True}, {"limit": "5"}, {"limit": 0}, {"limit": 10**5000}, {"host": None},
                                   {"host": "\0"}, {"host": "a\nb"}, {"host": "\ud800"}, {"hosts": "a"}, {"\n": 1}])  # fmt: skip
def test_a_wrong_argument_is_one_line(given):
    told = tools.wrong(SCHEMA, given)
    assert told
    assert told.isprintable()
    assert tools.wrong(SCHEMA, {"host": "a", "limit": 5}) == ""
