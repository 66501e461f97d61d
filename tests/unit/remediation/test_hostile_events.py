"""What modules return is a host's word: any shape of it costs that host's work at most."""

import json
import sys

import pytest

from nodetune.remediation import rollout
from nodetune.remediation.ansible import events
from nodetune.remediation.ansible.events import Reader
from nodetune.remediation.ansible.play import recorded
from nodetune.remediation.runs.record import Run
from nodetune.report.text import apply as text_apply

WRONG = (None, True, -1, 1e308, 1 << 70, "x", "\x1b[2J", [], [None], {}, {"x": []}, [[1]], [{}])


def deep(depth):
    found = "x"
    for _ in range(depth):
        found = [found]
    return found


def read(reader, res, host="h0", kind="runner_on_ok"):
    return reader.read({"event": kind, "event_data": {"host": host, "task": "t", "res": res}})


def ended(reader, *aliases):
    reader.read({"event": "playbook_on_stats", "event_data": {"processed": dict.fromkeys(aliases, 1)}})
    return reader.outcomes()


@pytest.mark.parametrize("member", ["problems", "done", "refused", "interrupted", "diff", "entries", "waits"])
def test_no_shape_of_a_result_ends_the_report_of_a_run(member, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path))
    reader, run = Reader({"h0": "a", "h1": "b"}), Run.create("apply", {}, ["a", "b"])
    record = recorded(run, lambda event: None)
    inner = ("label", "message", "checks", "changed", "did", "run", "diff", "before", "before_header")
    for wrong in WRONG:
        for res in ({member: wrong}, *({member: [{name: wrong, "changed": True}]} for name in inner)):
            record(read(reader, res))
    outcomes = ended(reader, "h0", "h1")
    rollout._problems(outcomes["a"])
    rollout._refused(outcomes["a"])
    text_apply.print_rollback(sys.stdout, outcomes, ())
    text_apply.print_interrupted(sys.stdout, rollout.interrupted(outcomes), single=False)
    text_apply.print_problems(sys.stdout, text_apply.problems_of(outcomes), {}, single=False)
    text_apply.print_diffs(sys.stdout, text_apply.diffs_of(outcomes), single=False)
    json.dumps(text_apply.problems_of(outcomes))
    assert "\x1b" not in capsys.readouterr().out
    assert outcomes["b"].state == "ok"


def test_a_result_that_is_nested_too_deeply_fails_its_host():
    reader = Reader({"h0": "a", "h1": "b"})
    event = read(reader, {"entries": [{"n": deep(5000)}]})
    assert (event.status, event.result) == ("failed", {})
    read(reader, {"entries": [{"n": 1}]}, "h1")
    outcomes = ended(reader, "h0", "h1")
    assert (outcomes["a"].state, "nested" in outcomes["a"].message) == ("failed", True)
    assert (outcomes["b"].state, outcomes["b"].gathered("entries")) == ("ok", [{"n": 1}])


@pytest.mark.parametrize("many", ["x" * 1000, [0] * 20, {f"k{n}": n for n in range(20)}])
def test_a_host_that_says_too_much_altogether_fails(many, monkeypatch):
    monkeypatch.setattr(events, "MAX_KEPT", 10_000)
    reader = Reader({"h0": "a", "h1": "b"})
    for _ in range(50):
        read(reader, {"entries": [{"n": many}]})
    read(reader, {"entries": [{"n": 1}]}, "h1")
    outcomes = ended(reader, "h0", "h1")
    assert outcomes["a"].state == "failed"
    assert "too much output" in outcomes["a"].message
    assert len(json.dumps([each.result for each in outcomes["a"].results])) < 40_000
    assert outcomes["b"].state == "ok"
