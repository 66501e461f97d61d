"""Connections of paramiko: which are left to OpenSSH, and what is told of one that came to nothing."""

from types import SimpleNamespace

import pytest
from paramiko.ssh_exception import ChannelException

from nodetune.hosts.target import Target
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.ssh_config import Settings
from nodetune.remote.paramiko import connections

GPU1 = Settings("gpu1", "gpu1.example", 2222)


def carrier(first=b"", taken=0, ended=False, flooded=False):
    return SimpleNamespace(first=first, taken=taken, ended=ended, flooded=flooded)


def told(error):
    return error.state, error.message


@pytest.mark.parametrize(
    ("given", "problem", "state", "says"),
    [
        (carrier(b"HTTP/1.1 400\r\n", 14), EOFError(), "bad answer", "the service at gpu1.example port 2222 is not SSH; it sent: HTTP/1.1 400"),
        (carrier(ended=True), EOFError(), "dropped", "without a message: sshd may be overloaded (MaxStartups)"),
        (carrier(), ConnectionResetError(), "dropped", "without a message: sshd may be overloaded (MaxStartups)"),
        (carrier(b"Exceeded MaxStartups\r\n", 22, True), EOFError(), "dropped", "before the login, saying: Exceeded MaxStartups"),
        (carrier(), TimeoutError(), "deadline", "accepted the connection and sent nothing: no SSH handshake within"),
        (carrier(b"SSH-2.0-x\r\n", 11), TimeoutError(), "deadline", "accepted the connection and stopped sending after 11 bytes"),
    ],
)  # fmt: skip
def test_a_handshake_that_does_not_come_is_told_by_what_the_service_sent(given, problem, state, says):
    found = told(connections._no_handshake(problem, given, GPU1, Deadline(5)))
    assert found[0] == state
    assert says in found[1]


def test_a_connection_that_breaks_is_told_with_what_was_done():
    deadline = Deadline(60)
    deadline.stage = "logging in"
    broken = told(connections._broken(EOFError(), carrier(), deadline))
    assert broken == ("dropped", "the connection broke, was logging in: EOFError")
    broken = told(connections._broken(OSError("reset"), carrier(), deadline))
    assert broken == ("dropped", "the connection broke, was logging in: reset")
    flooded = told(connections._broken(EOFError(), carrier(taken=4 << 20, flooded=True), deadline))
    assert flooded == ("too much output", "cut off after 4 MiB")
    assert told(connections._broken(EOFError(), carrier(), Deadline(0)))[0] == "deadline"


@pytest.mark.parametrize(
    ("code", "state", "says"),
    [
        (1, "unsupported", "jump host bastion forbids forwarding (AllowTcpForwarding)"),
        (2, "unreachable", "jump host bastion cannot connect to gpu1.example port 2222: is the host up"),
    ],
)
def test_a_jump_host_that_refuses_is_told_by_its_reason(code, state, says):
    found = told(connections._refused_by_jump(ChannelException(code, "no"), "bastion", GPU1))
    assert found[0] == state
    assert says in found[1]


@pytest.mark.parametrize(
    ("told_by_ssh", "why"),
    [
        ({}, ""),
        ({"proxycommand": "ssh -W %h:%p bastion"}, ""),
        ({"proxycommand": "nc %h %p %k"}, "its ProxyCommand has a token that only OpenSSH knows"),
        ({"proxycommand": "none"}, ""),
        ({"proxyusefdpass": "yes"}, "ProxyUseFdpass is set"),
        ({"proxyusefdpass": "no"}, ""),
        ({"bindinterface": "eth0"}, "bindinterface is set"),
        ({"bindinterface": "none"}, ""),
    ],
)
def test_what_paramiko_cannot_do_is_left_to_openssh(told_by_ssh, why):
    settings = Settings("gpu1", "gpu1.example", told={name: (value,) for name, value in told_by_ssh.items()})
    keys = SimpleNamespace(lines=lambda _host: [SimpleNamespace(marker="")])
    assert connections.needs_openssh(settings, keys, Target("gpu1")) == why


def test_a_host_with_a_certificate_authority_is_left_to_openssh():
    keys = SimpleNamespace(lines=lambda _host: [SimpleNamespace(marker="cert-authority")])
    assert (
        connections.needs_openssh(GPU1, keys, Target("gpu1")) == "known_hosts has a certificate authority for this host"
    )
