"""Hosts that are broken or hostile, behind a real sshd: each is named rightly, and none harms anything else."""

import os
import re
import resource
import subprocess
import threading
import time

import pytest
from village import FAULTS, UNREACHED, Fault, settle

from nodetune.api.model import HostFacts
from nodetune.foundation import text
from nodetune.hosts.connection_options import SessionOptions
from nodetune.remote import payload, pool
from tests.support.states import STATES

ASKED = payload.families(["host.arch", "sysctl.vm.swappiness"])
SECONDS = 30.0
OPTIONS = SessionOptions(seconds=SECONDS, connect_seconds=3)


GOOD = 6


@pytest.fixture(scope="module")
def village(new_farm):
    """A farm with a host for each fault, and good ones among them."""
    farm = new_farm()
    ports = settle(farm, GOOD, FAULTS, UNREACHED)
    yield farm
    ports.close()


def collect(targets, transport="auto", options=OPTIONS, forks=64, asked=ASKED):
    def script_for(_target):
        return payload.script(asked, 10.0)

    return {target.name: outcome for target, outcome, _ in pool.collect(targets, script_for, options, forks, transport)}


def children_of_ours():
    done = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    return [line for line in done.stdout.splitlines() if re.search(r"\bssh\b(?!d)", line.split(None, 1)[-1])]


@pytest.mark.xdist_group("hostile")  # one after the other: each logs in to many hosts at once, within their deadline
@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_every_fault_is_named_and_nothing_else_is_harmed(village, transport):
    """One run over all of them: a fault could harm another host, the run or this machine only there."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = collect(village.targets, transport, forks=32)
    # those that never end would take minutes; how long a busy machine takes to log in to all is not judged
    assert time.monotonic() - start < 4 * SECONDS, "the run ends by the deadline"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000, (
        "in KiB: nothing is kept without bounds"
    )
    assert len(found) == len(FAULTS) + len(UNREACHED) + GOOD
    assert wrongly_named(found) == []
    assert_messages_are_safe(found)
    assert_facts_are_safe(found)
    assert children_of_ours() == []
    time.sleep(0.3)
    assert [each.name for each in threading.enumerate() if each.name.startswith("nodetune ")] == []


def wrongly_named(found):
    wrong = []
    for name, outcome in found.items():
        fault = (FAULTS | UNREACHED).get(name, Fault("", "ok"))
        state, message = ("ok", "") if isinstance(outcome, HostFacts) else (outcome.state, outcome.message)
        if not re.fullmatch(fault.state, state) or not re.search(fault.says, message):
            wrong.append(f"{name}: {state}: {message}")
    return wrong


def assert_messages_are_safe(found):
    """One line each, without escapes or a traceback, in a state that is listed."""
    for name, outcome in found.items():
        if not isinstance(outcome, HostFacts):
            assert outcome.state in STATES
            assert text.plain(outcome.message, 1000) == outcome.message, name
            assert 10 < len(outcome.message) < 700, name
            assert "Traceback" not in outcome.message, name


def assert_facts_are_safe(found):
    """They bear the name of the inventory, whatever the host says, and no escapes where names are."""
    for name in ("../../x", "escapes", "good0"):
        assert found[name].host == name
    assert all(name.isprintable() for name in found["escapes"].facts)
    assert found["good0"].facts["sysctl.vm.swappiness"]
