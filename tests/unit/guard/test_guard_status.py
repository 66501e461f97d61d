"""Whose drain a node has, by what the guard left on it, before and after Slurm's own reason was replaced."""

import json
import socket
import time

import pytest

from nodetune.api.model import Absent, HostFacts, HostResult, Value
from nodetune.guard.deploy import cluster, node_state, resume, status
from nodetune.guard.deploy.paths import POLICY
from nodetune.guard.node.scontrol import Node
from nodetune.hosts.connection_options import ConnectionOptions

NOW = int(time.mktime(time.strptime("2026-11-21T10:00:00", "%Y-%m-%dT%H:%M:%S")))
REASON = "nodetune: gpu-lost: GPU0: NVML: GPU is lost"
HELD = {"node": "n01", "job": "7", "time": NOW - 2, "reason": REASON, "checks": ["gpu-lost"]}


def node(reason="Prolog error", state="IDLE+DRAIN"):
    return Node(f"NodeName=n01 State={state} Reason={reason} [root@2026-11-21T10:00:00]")


def probed(held=HELD, explained=""):
    texts = {node_state.HELD: held if isinstance(held, str) else json.dumps(held), node_state.EXPLAINED: explained}
    facts = {f"file.{path}": Value(text) for path, text in texts.items()}
    return HostResult("n01", "ok", facts=HostFacts("n01", {**facts, f"file.{POLICY}": Absent("no such file")}))


@pytest.mark.parametrize("reason", ["Prolog error", "Epilog error"])
def test_a_drain_by_slurm_for_a_held_job_is_the_guards(reason):
    found = status.of(node(reason), probed())
    assert found.guard.ours
    assert found.guard.held == ("7", REASON)
    drained = resume.look(node(reason), probed())
    assert isinstance(drained, resume.Drained)
    assert drained.blamed == {"gpu-lost"}


OTHERS = {
    "another reason": (node("bad DIMM"), probed()),
    "another node": (node(), probed({**HELD, "node": "n02"})),
    "another time": (node(), probed({**HELD, "time": NOW - 300})),
    "a drain has its reason since": (node(), probed(explained=f"{NOW - 1}\n")),
    "only down": (node(state="DOWN"), probed()),
    "no record": (node(), probed("")),
    "no number": (node(), probed({**HELD, "time": "now"})),
    "a huge number": (node(), probed({**HELD, "time": 10**400})),
    "no record but a list": (node(), probed("[]")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_drain_by_slurm_without_a_held_job_is_not_ours(name):
    seen, result = OTHERS[name]
    found = status.of(seen, result)
    assert (found.guard.ours, found.guard.held) == (False, None)
    assert isinstance(resume.look(seen, result), resume.Fate)


def test_a_reason_that_is_written_meanwhile_stays_the_guards():
    drained = resume.look(node(), probed())
    assert resume.drain.ours(node(REASON), drained.notes)


def test_only_the_local_node_is_read_without_a_connection():
    here = Node(f"NodeName=gpu7 NodeHostName={socket.gethostname()} State=IDLE")
    there = Node("NodeName=gpu8 NodeHostName=elsewhere State=IDLE")
    nodes = {each.name: each for each in (here, there)}
    ways = {target.name: target.connection for target in cluster.targets(ConnectionOptions(), nodes)}
    assert ways == {"gpu7": "local", "gpu8": "ssh"}
    asked = cluster.targets(ConnectionOptions(transport="openssh"), nodes)
    assert {target.connection for target in asked} == {"ssh"}


def test_an_inventory_says_itself_how_this_host_is_reached(tmp_path):
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("all: {hosts: {gpu7: {ansible_host: 192.0.2.7}, other: {}}}\n")
    here = Node(f"NodeName=gpu7 NodeHostName={socket.gethostname()} State=IDLE")
    (target,) = cluster.targets(ConnectionOptions(inventory=str(hosts)), {"gpu7": here})
    assert (target.address, target.connection) == ("192.0.2.7", "ssh")
