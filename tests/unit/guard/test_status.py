"""Whose drain a node has, by what the guard left on it, before and after Slurm's own reason was replaced."""

import io
import json
import socket
import time

import pytest

from nodetune.api.model import Absent, HostFacts, HostResult, Value
from nodetune.guard.deploy import cluster, document, node_state, resume, status, uninstall
from nodetune.guard.deploy.nodes import GuardedHosts, GuardedNode
from nodetune.guard.deploy.paths import POLICY
from nodetune.guard.node.scontrol import SlurmNode
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.report.text import guard as text_guard
from tests.support import documents

NOW = int(time.mktime(time.strptime("2026-11-21T10:00:00", "%Y-%m-%dT%H:%M:%S")))
REASON = "nodetune: gpu-lost: GPU0: NVML: GPU is lost"
HELD = {"node": "n01", "job": "7", "time": NOW - 2, "reason": REASON, "checks": ["gpu-lost"]}


def node(reason="Prolog error", state="IDLE+DRAIN"):
    return SlurmNode(f"NodeName=n01 State={state} Reason={reason} [root@2026-11-21T10:00:00]")


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


@pytest.mark.parametrize(
    ("beat", "verdict", "reason"),
    [
        (f"7 fail: {REASON[10:]}", "fail", REASON[10:]),
        (f"- health: fail: {REASON[10:]}", "health: fail", REASON[10:]),
        (f"7 held: {REASON[10:]}", "held", REASON[10:]),
        ("7 fail", "fail", ""),
        ("7 pass again", "pass again", ""),
        ("- health: inconclusive", "health: inconclusive", ""),
    ],
)
def test_status_says_which_check_failed_and_its_value(beat, verdict, reason):
    result = probed()
    result.facts.facts[f"file.{node_state.HEARTBEAT}"] = Value(f"{NOW} {beat}\n")
    found = status.of(SlurmNode("NodeName=n01 State=IDLE"), result)
    assert (found.guard.last_run[2], found.guard.last_reason) == (verdict, reason)
    stream = io.StringIO()
    text_guard.print_status(stream, [found], "")
    assert (f"failed    n01  {reason}" in stream.getvalue()) == bool(reason)
    (told,) = documents.valid("slurm-status", document.status([found]))["nodes"]
    assert told["guard"]["last_reason"] == reason


@pytest.mark.parametrize(
    ("reason", "drained"),
    [(REASON, ["n01"]), ("bad DIMM", []), (None, ["n01"])],
)
def test_an_uninstall_names_the_nodes_that_the_guard_drained(tmp_path, monkeypatch, reason, drained):
    """By Slurm's word where this machine can ask it; else by the node's records, which outlive a drain."""
    tool = tmp_path / "scontrol"
    monkeypatch.setattr(cluster.shutil, "which", lambda *_, **__: str(tool) if tool.exists() else None)
    if reason:
        line = f"NodeName=n01 State=IDLE+DRAIN Reason={reason} [root@2026-11-21T10:00:00]"
        tool.write_text(f"#!/bin/sh\necho '{line}'\n")
        tool.chmod(0o755)
    result = probed("")
    result.facts.facts[f"file.{node_state.NOTES[1]}"] = Value(json.dumps(HELD))
    hosts = GuardedHosts([], [GuardedNode(result)], [])
    found = uninstall.drained(hosts)
    assert found == (drained, reason is not None)
    stream = io.StringIO()
    text_guard.print_drained(stream, *found, "-i prod -b")
    assert ("nodetune guard resume -i prod -b n01" in stream.getvalue()) == bool(drained)
    assert ("may still be so" in stream.getvalue()) == (reason is None)


def test_only_the_local_node_is_read_without_a_connection():
    here = SlurmNode(f"NodeName=gpu7 NodeHostName={socket.gethostname()} State=IDLE")
    there = SlurmNode("NodeName=gpu8 NodeHostName=elsewhere State=IDLE")
    nodes = {each.name: each for each in (here, there)}
    ways = {target.name: target.connection for target in cluster.targets(ConnectionOptions(), nodes)}
    assert ways == {"gpu7": "local", "gpu8": "ssh"}
    asked = cluster.targets(ConnectionOptions(transport="openssh"), nodes)
    assert {target.connection for target in asked} == {"ssh"}


def test_an_inventory_says_itself_how_this_host_is_reached(tmp_path):
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("all: {hosts: {gpu7: {ansible_host: 192.0.2.7}, other: {}}}\n")
    here = SlurmNode(f"NodeName=gpu7 NodeHostName={socket.gethostname()} State=IDLE")
    (target,) = cluster.targets(ConnectionOptions(inventory=str(hosts)), {"gpu7": here})
    assert (target.address, target.connection) == ("192.0.2.7", "ssh")


@pytest.mark.parametrize(
    ("facts", "timer", "says"),
    [
        ({}, False, "slurm.conf n01 no slurm.conf and no slurmd there: nothing would run the guard; --timer runs its"),
        ({}, True, "slurm.conf n01 no slurm.conf and no slurmd there: only the timer runs the guard"),
        (
            {"slurm.present": Value(value=True)},
            True,
            "slurm.conf n01 Slurm is there, but no slurm.conf was found: only",
        ),
        ({"slurm.config": Value({"file": "/etc/slurm/slurm.conf", "settings": {}})}, False, ""),
    ],
)
def test_an_install_says_where_nothing_calls_the_guard(facts, timer, says):
    result = probed("")
    result.facts.facts.update(facts)
    stream = io.StringIO()
    text_guard.print_without_slurm(stream, [GuardedNode(result)], timer)
    told = " ".join(stream.getvalue().split())
    assert told.startswith(says)
    assert bool(told) == bool(says)


def test_an_uninstall_names_the_nodes_without_a_guard():
    bare, guarded = GuardedNode(probed("")), GuardedNode(probed(""))
    guarded.policy = {"mode": "observe"}
    stream = io.StringIO()
    text_guard.print_bare(stream, [bare, guarded])
    assert stream.getvalue() == f"no guard on {bare.name}\n"
    text_guard.print_bare(stream, [guarded])
    assert stream.getvalue().count("\n") == 1
