"""The program on a node of a Slurm step: what a command says arrives whole, and the command ends with its reader."""

import json
import subprocess
import sys

import pytest

from nodetune.onhost import protocol
from nodetune.remote import payload
from nodetune.remote.slurm.relay import PLACE

NONCE = "0123456789abcdef"
PROGRAM = [sys.executable, "-I", "-S", "-c", "import os; exec(os.environ.pop('RELAY'))"]


def relayed(command, script="", most=1 << 20, seconds=30, given=None):
    """(kind, data) of all that the relay says; its input stays open unless `given` says what is in it."""
    plan = json.dumps(
        {"nonce": NONCE, "seconds": seconds, "most": most, "command": command, "others": {}, "script": script}
    )
    environment = {"RELAY": payload.relay(NONCE), f"{PLACE}0": plan[:50], f"{PLACE}1": plan[50:]}
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as running:
        if given is not None:
            running.stdin.close()
        said = running.stdout.read()
    return [(found[:1], found[1:]) for found in protocol.Decoder(NONCE).feed(said)]


def test_output_errors_and_exit_status_arrive_apart():
    found = relayed("cat; echo oops >&2; exit 3", script="x" * 100_000)
    assert found[0] == (b"b", b"")
    assert b"".join(data for kind, data in found if kind == b"o") == b"x" * 100_000
    assert [data for kind, data in found if kind == b"e"] == [b"oops\n"]
    assert found[-1] == (b"x", b"3")


@pytest.mark.parametrize(
    "change",
    [
        {"most": 1000, "command": "yes"},
        {"seconds": 0.2, "command": "sleep 600"},
        {"given": b"", "command": "sleep 600"},
    ],
)
def test_a_command_ends_with_its_limits_or_its_reader(change):
    assert relayed(**change)[-1] == (b"x", b"-9")
