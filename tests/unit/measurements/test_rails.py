"""Rails between hosts: over TCP for real, and how the ranks of each rail meet."""

import shutil
import sys
from pathlib import Path

import pytest

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.remote import payload
from nodetune.verify import remote

MEETING = Path(__file__).parents[2] / "support" / "measurements" / "rails_meeting.py"


@pytest.fixture
def measure(monkeypatch):
    """measure(name, hosts, **options): the records of each of so many hosts, which are all this machine."""

    def run(name, count, **options):
        monkeypatch.setattr(remote, "new_run", str)  # whoever else measures on this machine
        targets = [Target(f"h{number}", connection="local", python=sys.executable) for number in range(count)]
        group = {"hosts": [target.name for target in targets]}
        plan = {"measurements": [{"name": name, "options": options, "seconds": 60}], "group": group}
        found = {target.name: [] for target in targets}
        reach = ConnectionOptions(options=SessionOptions(seconds=60))
        for target, event in remote.measure(targets, lambda _: plan, reach):
            if isinstance(event, dict) and "record" in event:
                found[target.name].append(event["record"])
        return found

    return run


@pytest.fixture
def meeting(tmp_path, monkeypatch, measure):
    folder = tmp_path / "measurements"
    shutil.copytree(payload.MEASUREMENTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(MEETING, folder)
    monkeypatch.setattr(payload, "MEASUREMENTS", folder)
    return lambda count, **options: measure("rails_meeting", count, **options)


@pytest.mark.parametrize("count", [2, 3])
def test_a_ring_of_hosts_is_measured_and_checked(measure, count):
    for records in measure("rails", count, over="tcp", seconds=0.8).values():
        (record,) = records
        assert record.get("failed") is None
        assert (record["subject"], record["unit"], len(record["samples"])) == ("rail 0", "Gb/s", 4)
        assert record["about"]["nodes"] == count
        assert record["about"]["bytes"] > 0


@pytest.mark.parametrize(
    ("count", "options", "words"),
    [(1, {}, "two hosts are needed"), (2, {"over": "pigeons"}, "only nccl and tcp")],
)
def test_what_cannot_be_measured_is_said(measure, count, options, words):
    for records in measure("rails", count, **options).values():
        assert words in (records[0].get("skip") or records[0]["failed"])


def test_every_rail_meets_under_its_own_identity(meeting):
    found = meeting(3)
    assert found["h1"] == found["h2"] == []
    paces = {record["subject"]: record["samples"][0] for record in found["h0"]}
    assert sorted(paces) == ["rail 0", "rail 1", "rail 2"]
    assert paces["rail 0"] * 7 == pytest.approx(paces["rail 1"] * 8, rel=0.01)
    assert paces["rail 0"] * 7 == pytest.approx(paces["rail 2"] * 9, rel=0.01)
    assert {record["subject"][-1] == record["about"]["nics"][0][-1] for record in found["h0"]} == {True}


def test_wrong_data_of_one_rail_costs_only_that_rail(meeting):
    found = meeting(2, wrong=[1, 2])
    assert {record["subject"] for record in found["h0"]} == {"rail 0", "rail 1"}
    ((subject, reason),) = [(record["subject"], record["failed"]) for record in found["h1"]]
    assert subject == "rail 2"
    assert "came back wrong" in reason


def test_hosts_with_other_numbers_of_gpus_have_no_rails(meeting):
    for records in meeting(2, gpus=[2, 4]).values():
        assert "2 or 4 GPUs" in records[0]["failed"]
