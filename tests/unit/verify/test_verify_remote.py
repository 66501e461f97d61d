"""Hosts that measure, as the controller sees them: events as they come, relay within groups, hosts that end or lie."""

import secrets
import sys

import pytest

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.remote import payload
from nodetune.remote.live_pool import Ended
from nodetune.verify import remote
from tests.support.verifying import SLEEPS, alive, gone, planted

MEETS = """
def measure(options, report):
    report.step("meeting")
    report.tell("name", {"index": report.self, "bulk": "x" * 100000})
    heard = report.hear_all("name", 60)
    told = [each["index"] for each in heard.values()]
    report.tell("again", report.self)
    again = [report.hear("again", 60) for _ in heard]
    report.result(report.hosts[report.self], [1], "s", heard=sorted(told), again=sorted(again), sizes=[len(each["bulk"]) for each in heard.values()])
"""
FAILS = """
import os, time
from nodetune.measurements.host import report as reporting
def measure(options, report):
    if report.hosts[report.self] == "b":
        {body}
    report.result("x", [report.hear("word", 250)], "s")
"""


def here(name, **more):
    return Target(name, connection="local", **more)


def reach(**more):
    return ConnectionOptions(options=SessionOptions(seconds=30.0), **more)


@pytest.fixture(autouse=True)
def _beside_others(monkeypatch):
    """Tests of other files may measure on this machine at the same time."""
    monkeypatch.setattr(remote, "new_run", str)


@pytest.fixture
def plant(tmp_path, monkeypatch):
    def add(**sources):
        monkeypatch.setattr(payload, "MEASUREMENTS", planted(tmp_path, **sources))

    return add


def together(names, *measurements, **options):
    group = {"hosts": list(names)} if len(names) > 1 else None
    plan = {"measurements": [{"name": each, "options": options, "seconds": 200} for each in measurements]}
    return {**plan, "group": group} if group else plan


def run(names, *measurements, asked=None, **options):
    """All events of the hosts a, b … of one group: {host: events}."""
    plan = together(names, *measurements, **options)
    found = {name: [] for name in names}
    for target, event in remote.measure([here(name) for name in names], lambda _: plan, asked or reach()):
        found[target.name].append(event)
    return found


def records(events):
    return [event["record"] for event in events if isinstance(event, dict) and "record" in event]


def test_every_host_reports_start_figures_and_end():
    (events,) = run("a", "disk").values()
    assert [next(iter(event)) for event in events[:-1]] == ["begin", "step", "record", "done", "end"]
    assert isinstance(events[-1], Ended)
    assert events[-1].problem is None


def test_hosts_of_a_group_hear_each_other(plant):
    plant(meets=MEETS)
    names = "abc"
    found = list(run(names, "meets", "meets").values())
    assert len(found) == len(names)
    for index, events in enumerate(found):
        others = [number for number in range(3) if number != index]
        for record in records(events):
            assert record["about"]["heard"] == record["about"]["again"] == others
            assert record["about"]["sizes"] == [100000, 100000]
        assert len(records(events)) == 2


def test_a_group_runs_together_whatever_the_forks(plant):
    plant(meets=MEETS)
    found = run("abc", "meets", asked=reach(forks=1))
    assert set(found) == set("abc")
    assert all("samples" in records(events)[0] for events in found.values())


def test_hosts_without_a_group_hear_nobody(plant):
    plant(meets=MEETS)
    plan = together("a", "meets")
    asked = remote.measure([here("a"), here("b")], lambda _: plan, reach())
    found = [event["record"]["about"]["heard"] for _, event in asked if isinstance(event, dict) and "record" in event]
    assert found == [[], []]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise reporting.SkipError('no iperf3 here')", "b: no iperf3 here"),
        ("raise reporting.MeasurementError('it broke')", "b: it broke"),
        ("os._exit(3)", "b: its process ended (exit status 3); it was at: its start"),
        ("os.kill(os.getppid(), 9); time.sleep(300)", "b: this host has gone"),
        ("return", "b: it has no more messages"),
    ],
)
def test_nobody_waits_for_a_host_that_will_say_no_more(plant, body, says):
    plant(fails=FAILS.format(body=body))
    found = run("ab", "fails")
    (record,) = records(found["a"])
    assert (record.get("failed") or record["skip"]).startswith(says)


def test_what_is_told_before_the_others_have_begun_is_heard(plant):
    late = "import time\ndef measure(options, report):\n    if report.self: time.sleep(1.5)\n"
    plant(late=late, meets=MEETS)
    assert ["samples" in records(events)[0] for events in run("ab", "late", "meets").values()] == [True, True]


def test_leaving_ends_everything_on_every_host(plant):
    plant(sleeps=SLEEPS)
    marker = f"nodetune-test-{secrets.token_hex(8)}"
    plan = {"measurements": [{"name": "sleeps", "options": {"marker": marker}, "seconds": 300}]}
    running = remote.measure([here("a"), here("b")], lambda _: plan, reach())
    at_it = set()
    for target, event in running:
        if isinstance(event, dict) and event.get("step", {}).get("text") == "sleeping":
            at_it.add(target.name)
        if at_it == {"a", "b"}:
            break
    assert gone(lambda: len(alive(marker)) < 2) is False
    running.close()
    assert gone(lambda: alive(marker)) == []


def test_a_killed_payload_is_dropped_and_names_its_step(plant):
    plant(
        dies="import os, time\ndef measure(options, report):\n    report.step('this')\n    os.kill(os.getppid(), 9)\n    time.sleep(300)\n"
    )
    (events,) = run("a", "dies").values()
    assert events[-1].problem.state == "dropped"
    assert events[-1].problem.message.startswith("the connection ended while measuring (dies: ")
    assert sum("begin" in event for event in events[:-1]) == 1, "it was not tried a second time"


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ({"measurements": [{"name": "speed"}]}, "unknown measurement speed: there are clock, decompress, disk"),
        ({"measurements": [{"name": "report"}]}, "unknown measurement report"),
        ({"measurements": [{"name": "../probe/cpu"}]}, "unknown measurement"),
        ({"measurements": [], "group": {"hosts": ["x"]}}, "a is not in its own group: x"),
        ({"measurements": [], "group": {"hosts": ["a", "x"]}}, "a should measure with x, which is not in this run"),
    ],
)
def test_an_impossible_plan_is_refused_before_anything_runs(plan, says):
    with pytest.raises(ValueError, match=says):
        next(remote.measure([here("a")], lambda _: plan, reach()))


def test_a_deadline_is_the_plans_or_the_measurements_own():
    assert remote.seconds_of({"name": "memory", "seconds": 3}) == 3.0
    assert remote.seconds_of({"name": "disk"}) == 180.0


# Hosts that lie

LIAR = """
import os, re, sys
sys.path.insert(0, {root!r})
from nodetune.onhost import protocol
script = sys.stdin.buffer.readline()
size = int(re.search(rb"< (\\d+):", script).group(1))
text = sys.stdin.buffer.read(size)
nonce = re.search(rb"NONCE = '(\\w+)'", text).group(1).decode()
def say(event):
    sys.stdout.buffer.write(protocol.encode_event(event, nonce))
    sys.stdout.flush()
{body}
"""


@pytest.fixture
def liar(tmp_path):
    """What becomes of a host whose python3 is not one: liar(what it does)."""

    def run(body, seconds=5.0):
        program, python = tmp_path / "liar.py", tmp_path / "python3"
        program.write_text(LIAR.format(root=str(payload.MEASUREMENTS.parent.parent), body=body))
        python.write_text(f"#!/bin/sh\nexec {sys.executable} {program}\n")
        python.chmod(0o755)
        plan = {"measurements": [{"name": "disk", "seconds": seconds}]}
        asked = ConnectionOptions(options=SessionOptions(seconds=seconds, most_said=4 << 20))
        found = remote.measure([here("a", python=str(python))], lambda _: plan, asked)
        return [event for _, event in found]

    return run


RECORD = "say({'record': dict({'measurement': 'disk', 'metric': 'm', 'subject': 's', 'samples': [1], 'unit': 'u', 'better': 'higher', 'about': {}}, **CHANGE)}); say({'end': {}})"


@pytest.mark.parametrize(
    "change",
    [
        "{'samples': []}", "{'samples': 'x'}", "{'samples': [True]}", "{'samples': [1e999]}", "{'samples': [1] * 30000}",
        "{'better': 'bigger'}", "{'measurement': 'nccl'}", "{'measurement': ['disk']}",
    ],
)  # fmt: skip
def test_a_figure_that_is_none_is_told_as_such(liar, change):
    events = liar(RECORD.replace("CHANGE", change))
    if "1e999" in change:
        assert events[0].problem.state == "bad answer"
    else:
        assert events[0]["record"]["measurement"] == "disk"
        wrong = "a figure that was not requested" if "'measurement'" in change else "an invalid figure"
        assert events[0]["record"]["failed"] == f"the host sent {wrong}"


def test_what_harms_a_terminal_is_defused(liar):
    change = "{'subject': '\\x1b[31mred', 'unit': chr(0x202e), 'about': {'\\x07': ['\\x1b]0;x']}}"
    record = liar(RECORD.replace("CHANGE", change))[0]["record"]
    assert "\x1b" not in str(record)
    assert record["subject"] == "\\x1b[31mred"
    assert record["about"] == {"\\x07": ["\\x1b]0;x"]}
    texts = liar("say({'step': {'text': '\\x1b[2J', 'measurement': 'disk'}}); say({'end': {}})")
    assert texts[0] == {"step": {"text": "\\x1b[2J", "measurement": "disk"}}


@pytest.mark.parametrize(
    "event",
    ["{'record': 1}", "{'step': []}", "{'tell': 'x'}", "{'tell': {'number': 'x', 'topic': 1}}", "{'other': {}}", "{}"],
)
def test_an_event_of_no_known_shape_is_passed_over(liar, event):
    events = liar(f"say({event}); say({{'end': {{}}}})")
    assert events[0] == {"end": {}}
    assert isinstance(events[1], Ended)


@pytest.mark.parametrize(
    ("body", "state"),
    [
        ("while True: sys.stdout.write('y' * 100000 + chr(10))", "too much output"),
        ("while True: sys.stderr.write('y' * 100000)", "too much output"),
        ("while True: say({'step': {'text': 'x' * 9000}})", "bad answer|too much output"),
        ("print('<<nodetune ' + nonce + ' 2/2 AAAA>>')", "bad answer"),
        ("say({'begin': {}}); sys.exit(3)", "dropped"),
        ("sys.exit(3)", "bad answer"),
        ("print('Permission denied')", "bad answer"),
        ("import time; time.sleep(300)", "deadline"),
        ("say({'begin': {}}); import time; time.sleep(300)", "deadline"),
    ],
)
def test_a_host_that_floods_hangs_or_ends_is_named(liar, body, state, monkeypatch):
    monkeypatch.setattr(remote, "ENDING_SECONDS", 0.0)
    *_, ended = liar(body, 5.0 if state == "deadline" else 60.0)
    assert ended.problem.state in state.split("|")
    assert ended.problem.message
