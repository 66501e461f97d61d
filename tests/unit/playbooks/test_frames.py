"""Peers of a link are asked by real pings between network namespaces: one may be lost, or take no large frames."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nodetune_host import frames
from nodetune_host.resources import link

HOST_CODE = Path(__file__).parents[3] / "playbooks" / "module_utils"
PEERS = {"192.0.2.2": {"host": "gpu02", "mtu": 9000}, "192.0.2.3": {"host": "gpu03", "mtu": 1500}}

pytestmark = pytest.mark.skipif(
    bool(os.geteuid())
    or not all(map(shutil.which, ("ip", "ping")))
    or subprocess.run(["unshare", "--net", "true"]).returncode != 0,
    reason="needs root, network namespaces and ping",
)

TWO_HOSTS = """
exec 9<&0
unshare --net sh -c 'ip link set lo up; echo $$; read wait' < /proc/self/fd/9 > peer &
while ! [ -s peer ]; do sleep 0.05; done
peer="nsenter --net=/proc/$(cat peer)/ns/net"
ip link add a0 type veth peer name b0 netns $(cat peer)
$peer ip addr add 192.0.2.2/24 dev b0
$peer ip link set b0 mtu "$1" up
ip addr add 192.0.2.1/24 dev a0
ip link set a0 up
export peer
exec "$2" -c "$3"
"""
CODE = f"""
import json, os, sys
sys.path.insert(0, {str(HOST_CODE)!r})
from nodetune_host import command, frames
from nodetune_host.problem import ChangeError
frames.BEFORE, frames.AFTER = 1, 1
known = {PEERS!r}
def own(words): command.run(words.split())
def peer(words): command.run(os.environ["peer"].split() + words.split())
"""


def between_two_hosts(tmp_path, code, mtu=9000):
    """Return the JSON that `code` prints on a host with the link a0, whose peer has b0 with this MTU."""
    words = ["unshare", "--net", "sh", "-ec", TWO_HOSTS, "sh", str(mtu), sys.executable, CODE + code]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as done:
        out = done.stdout.read()
    assert done.returncode == 0
    return json.loads(out)


def test_only_peers_that_answer_before_can_be_lost(tmp_path):
    assert between_two_hosts(
        tmp_path,
        "there = frames.peers('a0', known, 1500)\nown('ip link set a0 mtu 9000')\nprint(json.dumps([there, frames.lost('a0', there, 1500, 9000)]))",
    ) == [{"192.0.2.2": PEERS["192.0.2.2"]}, ""]


def test_a_peer_that_no_longer_answers_is_named(tmp_path):
    assert (
        between_two_hosts(
            tmp_path,
            "there = frames.peers('a0', known, 1500)\npeer('ip link set b0 down')\nprint(json.dumps(frames.lost('a0', there, 1500, 9000)))",
        )
        == "with MTU 9000, gpu02 (192.0.2.2) no longer answered"
    )


def test_large_frames_that_do_not_reach_a_peer_that_takes_them_are_named(tmp_path):
    assert (
        between_two_hosts(
            tmp_path,
            "there = frames.peers('a0', known, 1500)\nown('ip link set a0 mtu 9000')\nprint(json.dumps(frames.lost('a0', there, 1500, 9000)))",
            mtu=4000,
        )
        == "frames of 9000 bytes did not reach gpu02 (192.0.2.2)"
    )


def test_a_link_without_a_peer_that_answers_is_left_alone(tmp_path):
    assert between_two_hosts(
        tmp_path,
        "own('ip route add 198.51.100.0/24 via 192.0.2.9 dev a0')\n"
        "try: print(frames.peers('a0', {'192.0.2.3': known['192.0.2.3']}, 1500))\n"
        "except ChangeError as problem: print(json.dumps(str(problem)))",
    ).startswith("a0 mtu: left alone: no peer answers a ping that could prove it (the gateway (192.0.2.9), gpu03 (")


class Link:
    """A link whose MTU is set without a timer, and peers that answer as the test says."""

    def __init__(self, monkeypatch, lost):
        self.mtu, self.stopped = 1500, []
        monkeypatch.setattr(link, "read", lambda _change: {"mtu": self.mtu})
        monkeypatch.setattr(link, "_undo_later", lambda *_: None)
        monkeypatch.setattr(link, "_stop", self.stopped.append)
        monkeypatch.setattr(link.command, "run", self.run)
        monkeypatch.setattr(frames, "peers", lambda *_: PEERS)
        monkeypatch.setattr(frames, "lost", lambda *_: lost)

    def run(self, argv, *_):
        self.mtu = int(argv[-1])


@pytest.mark.parametrize("lost", ["", "with MTU 9000, gpu02 (192.0.2.2) no longer answered"])
def test_a_lost_peer_sets_the_mtu_back_and_leaves_the_next_boot_as_it_is(monkeypatch, tmp_path, do, lost):
    played = Link(monkeypatch, lost)
    change = {"change": "link", "link": "a0", "setting": "mtu", "value": 9000, "peers": PEERS, "checks": ["mtu"]}
    file = {"change": "file", "path": str(tmp_path / "kept"), "content": "9000\n", "after": "a0 mtu", "checks": ["mtu"]}
    result = do([change, file])
    assert played.mtu == (1500 if lost else 9000)
    assert (tmp_path / "kept").exists() is not bool(lost)
    assert bool(played.stopped) is bool(lost)
    told = [problem["message"] for problem in result.problems]
    assert told == (
        [f"a0 mtu: set back to 1500: {lost}", "not written, because a0 mtu was not changed"] if lost else []
    )
