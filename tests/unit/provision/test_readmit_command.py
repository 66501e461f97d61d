"""`nodetune readmit` without a cluster: what it refuses before it reaches a host."""

import json

import pytest

from nodetune.api.model import HostResult
from nodetune.audit.selection import Selection
from nodetune.foundation.request import RequestError
from nodetune.foundation.stage_output import Silent
from nodetune.guard.node.scontrol import SlurmNode
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.provision.readmit import neighbours, run, stages
from nodetune.provision.readmit.preparation import Prepared
from nodetune.provision.readmit.request import ReadmitRequest
from nodetune.verify.suites import SuiteRequest
from tests.support import commandline


def node(name, state="IDLE"):
    return SlurmNode(f"NodeName={name} State={state}")


@pytest.fixture
def chosen(tmp_path):
    """The neighbours of g3."""

    def of(*named, states=None, hosts=("g1", "g2", "g3", "g4", "g5", "g6")):
        path = tmp_path / "hosts.ini"
        path.write_text("".join(f"{name} ansible_connection=local\n" for name in hosts))
        nodes = {name: node(name, state) for name, state in (states or {}).items()}
        request = ReadmitRequest(ConnectionOptions(inventory=str(path)), host="g3", neighbours=named)
        return neighbours.chosen(request, nodes, Silent())

    return of


def test_the_two_nearest_idle_hosts_are_the_neighbours(chosen):
    states = {"g1": "IDLE", "g2": "ALLOCATED", "g4": "IDLE+DRAIN", "g5": "IDLE", "g6": "IDLE"}
    assert chosen(states=states) == (("g1", "g5"), "")


def test_named_neighbours_are_taken_as_they_are(chosen):
    assert chosen("g[5-6]") == (("g5", "g6"), "")
    assert chosen("none") == ((), "--with none")


def test_without_idle_hosts_there_are_no_neighbours(chosen):
    assert chosen(states={"g1": "MIXED"})[1] == "none of 5 other hosts is idle in Slurm: --with names good ones"
    assert chosen(hosts=("g3",))[1] == "the inventory has no other host"


@pytest.mark.parametrize("names", [("g3",), ("none", "g4")])
def test_neighbours_that_make_no_sense_are_refused(names):
    with pytest.raises(RequestError, match="--with"):
        ReadmitRequest(host="g3", neighbours=names)


def test_a_load_of_a_set_time_is_added_to_what_is_measured():
    (load,) = [each for each in ReadmitRequest(load_seconds=900).measured.items if each["name"] == "gpu_load"]
    assert load["options"]["seconds"] == 900
    assert load["seconds"] > 900, "its deadline"
    assert "--load-seconds 900" in " ".join(SuiteRequest(load_seconds=900).words)


def test_facts_of_another_host_are_no_facts_from_before(tmp_path):
    path = tmp_path / "before.json"
    path.write_text(json.dumps({"host": "g4", "facts": {}}))
    done = commandline.nodetune("readmit", "g3", "--before", path, "--dry-run")
    assert done.returncode == 2
    assert done.stderr.endswith("contains facts for g4, not for g3\n")


def test_after_ctrl_c_no_step_begins_and_nothing_is_resumed(monkeypatch):
    monkeypatch.setattr(stages.audit_run, "with_facts", lambda *_: [HostResult("g3", "interrupted", "stopped")])
    connection = ConnectionOptions(inventory="g3", transport="local")
    prepared = Prepared(ReadmitRequest(connection, Selection(), "g3"), node("g3", "IDLE+DRAIN"), "", None, (), "")
    kept = []
    found = run.carry_out(prepared, Silent(), lambda each: kept.append(dict(each.steps)))
    assert {step: each.state for step, each in found.steps.items()} == {"audit": "failed", "resume": "left out"}
    assert found.missing == ["audit: stopped by Ctrl-C"]
    assert [list(each) for each in kept] == [["audit"], ["audit", "resume"]], "evidence comes before a resume"
