"""Measurements that share a process and its open GPUs: what stays, what is given back, and when they do not."""

import pytest

from nodetune.remote import payload
from tests.support.verifying import Run, planted

TAKES = """
import os
from nodetune.measurements.cuda import gpus
from nodetune.measurements.host import report as reporting
def measure(options, report):
    for gpu in gpus.opened(options, report):
        free, total = gpu.free_memory()
        gpu.allocate(16 << 20)
        about = {"pid": os.getpid(), "cpus": len(os.sched_getaffinity(0))}
        report.result(gpu.name, [free], "bytes", **about)
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    if options.get("fails"):
        raise reporting.MeasurementError("broken")
    if options.get("hangs"):
        import time
        time.sleep(300)
"""
THIRD = """
import os
def measure(options, report):
    report.result("host", [1.0], "s", pid=os.getpid())
"""


@pytest.fixture
def measured(tmp_path, monkeypatch, libcuda):
    """measured(*options): the events of a plan that opens the GPUs with each of these options, one after the other."""
    monkeypatch.setattr(payload, "MEASUREMENTS", planted(tmp_path, takes=TAKES, third=THIRD))
    monkeypatch.setenv("STAND_IN_GPUS", "2")
    runs = []

    def measured(*options, then=()):
        items = [{"name": "takes", "options": {"libcuda": libcuda, **each}, "shares_cuda": True} for each in options]
        for item in items:
            item["seconds"] = item["options"].get("seconds", 20)
        runs.append(Run({"measurements": items + [{"name": name, "seconds": 20} for name in then]}))
        return runs[-1].all().events

    yield measured
    for run in runs:
        run.close()


def records(events):
    return [event["record"] for event in events if "record" in event]


def pids(events):
    return [each["about"]["pid"] for each in records(events) if "samples" in each]


def test_they_run_in_one_process_and_give_back_what_they_took(measured):
    events = measured({}, {}, {}, then=["third"])
    assert [event["done"]["measurement"] for event in events if "done" in event] == ["takes"] * 3 + ["third"]
    one, other = set(pids(events[:-1])[:6]), set(pids(events)[6:])
    assert (len(one), len(other)) == (1, 1)
    assert one != other, "what does not share has a process of its own"
    figures = [each for each in records(events) if each["measurement"] == "takes"]
    assert len({(each["subject"], *each["samples"]) for each in figures}) == 2, "as much is free each time"
    assert len({each["about"]["cpus"] for each in figures}) == 1, "a pinned thread is free again"


@pytest.mark.parametrize(("first", "says"), [({"fails": True}, "broken"), ({"hangs": True, "seconds": 2}, "killed")])
def test_after_a_failure_the_next_has_a_new_process(measured, first, says):
    events = measured(first, {})
    (failed,) = (each["failed"] for each in records(events) if "failed" in each)
    assert says in failed
    found = pids(events)
    assert len(found) == 4
    assert found[0] == found[1] != found[2] == found[3]


def test_the_deadline_of_the_second_begins_with_it(measured):
    events = measured({}, {"hangs": True, "seconds": 2})
    (failed,) = (each["failed"] for each in records(events) if "failed" in each)
    assert "not finished within 2 s" in failed
    assert len(set(pids(events))) == 1
