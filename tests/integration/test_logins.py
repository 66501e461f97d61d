"""Ways to log in, through a real sshd: what the user's OpenSSH configuration says holds for paramiko too."""

import os
import re
import socket
import subprocess
from dataclasses import replace

import pytest
from test_hostile_hosts import ASKED, children_of_ours

from nodetune.api.model import HostFacts
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.inventory import selection
from nodetune.remote import payload, pool
from nodetune.remote.login import ssh_config

OPTIONS = SessionOptions(seconds=20.0, connect_seconds=3)
BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])


def script_for(_target):
    return payload.script(ASKED, 10.0)


def probe(target, transport="auto", options=OPTIONS):
    ((_, outcome, _),) = pool.collect([target], script_for, options, 4, transport)
    return outcome


def probe_all(targets, transport="auto", options=OPTIONS):
    return [outcome for _, outcome, _ in pool.collect(targets, script_for, options, 16, transport)]


def way(outcome):
    assert isinstance(outcome, HostFacts), (outcome.state, outcome.message)
    return outcome.about["transport"]


@pytest.fixture
def known(farm):
    """Puts known_hosts back as it was."""
    before = farm.known_hosts.read_text()
    yield farm.known_hosts
    farm.known_hosts.write_text(before)


@BOTH
def test_a_new_key_is_trusted_only_when_told_and_then_known(farm, known, transport):
    text = "# no newline at the end" if transport == "paramiko" else "# OpenSSH needs one\n"
    known.write_text(text)
    target = farm.target(farm.good[0])
    assert probe(target, transport).state == "unknown host key"
    assert known.read_text() == text
    assert probe(target, transport, replace(OPTIONS, accept_new_host_keys=True)).facts
    assert f"[{farm.good[0]}]:{farm.port} ssh-ed25519 " in known.read_text()
    assert probe(target, transport).facts, "known from now on"


@pytest.fixture(scope="module")
def ipv6_only(new_farm):
    """A farm whose only host has nothing but an IPv6 address."""
    farm = new_farm()
    farm.start({"::1": ()})
    return farm


@BOTH
def test_a_host_that_has_only_ipv6_is_reached(ipv6_only, transport):
    farm = ipv6_only
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", farm.port), 10).close()
    farm.known_hosts.write_text("")
    (named,) = selection.targets(f"[::1]:{farm.port}", None)
    target = replace(named, ssh_args=("-F", str(farm.config)))
    assert probe(target, transport).state == "unknown host key"
    assert probe(target, transport, replace(OPTIONS, accept_new_host_keys=True)).facts
    assert f"[::1]:{farm.port} ssh-ed25519 " in farm.known_hosts.read_text()
    assert probe(target, transport).facts, "known from now on"


@BOTH
def test_a_changed_key_is_refused_even_when_new_ones_are_trusted(farm, known, transport):
    known.write_text("")
    farm.know(farm.good[0], (farm.folder / "stranger.pub").read_text())
    assert (
        probe(farm.target(farm.good[0]), transport, replace(OPTIONS, accept_new_host_keys=True)).state
        == "host key changed"
    )


@BOTH
@pytest.mark.parametrize("strict", ["no", "accept-new"])
def test_trusting_new_host_keys_never_trusts_changed_ones(farm, known, transport, strict):
    config = farm.with_config(f"StrictHostKeyChecking {strict}")
    known.write_text("")
    assert probe(farm.target(farm.good[0], config=config), transport).facts
    known.write_text("")
    farm.know(farm.good[0], (farm.folder / "stranger.pub").read_text())
    assert probe(farm.target(farm.good[0], config=config), transport).state == "host key changed"


def test_hashed_wildcard_and_alias_entries_are_understood(farm, known):
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", known], check=True)
    assert farm.good[0] not in known.read_text()
    assert way(probe(farm.target(farm.good[0]), "paramiko")) == "paramiko"
    key = " ".join(farm.host_key.split()[:2])
    known.write_text(f"[127.0.1.*]:{farm.port},!{farm.good[1]} {key}\n")
    assert way(probe(farm.target(farm.good[0]), "paramiko")) == "paramiko"
    known.write_text(f"the-alias {key}\n")
    assert (
        way(probe(farm.target(farm.good[0], config=farm.with_config("HostKeyAlias the-alias")), "paramiko"))
        == "paramiko"
    )


def test_hosts_known_only_by_a_certificate_authority_use_openssh(new_farm):
    farm = new_farm()
    ca = farm.folder / "ca"
    from farm import keygen

    authority = keygen(ca)
    addresses = [farm.address() for _ in range(4)]
    signed = ["ssh-keygen", "-q", "-s", ca, "-I", "host", "-h", "-n", ",".join(addresses), farm.folder / "host.pub"]
    subprocess.run(signed, check=True)
    farm.start(
        dict.fromkeys(addresses, ()), f"HostKey {farm.folder}/host", f"HostCertificate {farm.folder}/host-cert.pub"
    )
    kind, key = authority.split()[:2]
    farm.known_hosts.write_text(f"@cert-authority [127.0.1.*]:{farm.port} {kind} {key}\n")
    targets = [farm.target(each) for each in addresses]
    assert {way(outcome) for outcome in probe_all(targets)} == {
        "openssh: known_hosts has a certificate authority for this host"
    }
    refused = probe(targets[0], "paramiko")
    assert (refused.state, "use --transport auto or openssh" in refused.message) == ("unsupported", True)


def test_many_hosts_share_one_connection_to_their_jump_host(farm, new_farm):
    inner = new_farm()
    addresses = [inner.address() for _ in range(8)]
    inner.start(dict.fromkeys(addresses, ()))
    for address in addresses:
        with farm.known_hosts.open("a") as stream:
            stream.write(f"[{address}]:{inner.port} {' '.join(inner.host_key.split()[:2])}\n")
    (inner.folder / "authorized").write_text((farm.folder / "authorized").read_text())
    log = farm.folder / "log-0"
    before = log.read_text().count("Accepted publickey")
    config = farm.with_config(f"Host inner\n  ProxyJump {farm.user}@{farm.good[0]}:{farm.port}")
    targets = [farm.target("inner", f"inner{n}", config, port=inner.port) for n in range(8)]
    hosts = farm.with_config(
        "".join(f"Host inner{n}\n  HostName {each}\n  Port {inner.port}\n" for n, each in enumerate(addresses))
        + f"Host inner*\n  ProxyJump {farm.good[0]}"
    )
    targets = [farm.target(f"inner{n}", config=hosts) for n in range(8)]
    assert {way(outcome) for outcome in probe_all(targets, "paramiko")} == {"paramiko"}
    assert log.read_text().count("Accepted publickey") == before + 1
    assert way(probe(targets[0], "openssh")) == "openssh"


@BOTH
def test_a_dead_jump_host_is_named_before_the_deadline(farm, transport):
    config = farm.with_config(f"Host {farm.good[0]}\n  ProxyJump 127.0.1.250")
    outcomes = probe_all([farm.target(farm.good[0], f"h{n}", config) for n in range(3)], transport)
    assert {outcome.state for outcome in outcomes} <= {"refused", "dropped"}
    assert all("127.0.1.250" in outcome.message or transport == "openssh" for outcome in outcomes)


def test_a_host_unreachable_behind_a_jump_host_is_named(farm):
    config = farm.with_config(f"Host 127.0.1.251\n  ProxyJump {farm.good[0]}")
    outcome = probe(farm.target("127.0.1.251", config=config), "paramiko")
    assert (outcome.state, "cannot connect to 127.0.1.251" in outcome.message) == ("unreachable", True)


def test_a_jump_host_through_itself_is_an_error(farm):
    config = farm.with_config(f"ProxyJump {farm.good[0]}")
    outcome = probe(farm.target(farm.good[1], config=config), "paramiko")
    assert outcome.state == "unsupported"
    assert re.search("circular|loop", outcome.message)


@BOTH
def test_a_proxy_command_carries_the_connection_and_ends_with_it(farm, transport):
    relay = farm.folder / "relay.py"
    relay.write_text(
        "import os, select, socket, sys\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "while True:\n"
        "    for f in select.select([0, s], [], [])[0]:\n"
        "        data = os.read(0, 65536) if f == 0 else s.recv(65536)\n"
        "        if not data: sys.exit()\n"
        "        os.write(1, data) if f is s else s.sendall(data)\n"
    )
    config = farm.with_config(f"ProxyCommand {os.sys.executable} {relay} %h %p")
    assert way(probe(farm.target(farm.good[0], config=config), transport)) == transport
    left = subprocess.run(["pgrep", "-f", str(relay)], capture_output=True, text=True, check=False).stdout
    assert left == ""


def test_a_proxy_command_that_fails_is_a_dropped_connection(farm):
    outcome = probe(
        farm.target(farm.good[0], config=farm.with_config("ProxyCommand exit 1")),
        "paramiko",
        replace(OPTIONS, seconds=8),
    )
    assert outcome.state == "dropped"


@pytest.fixture
def agent(farm, monkeypatch):
    done = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True)
    found = dict(re.findall(r"(SSH_\w+)=([^;]+);", done.stdout))
    monkeypatch.setenv("SSH_AUTH_SOCK", found["SSH_AUTH_SOCK"])
    yield found["SSH_AUTH_SOCK"]
    os.kill(int(found["SSH_AGENT_PID"]), 15)


@BOTH
def test_the_agent_signs_for_many_hosts_at_once(farm, agent, transport):
    for name in ("stranger", "login"):
        subprocess.run(["ssh-add", "-q", farm.folder / name], check=True)
    config = farm.with_config(f"IdentityAgent {agent}", key=farm.folder / "nothing")
    outcomes = probe_all([farm.target(farm.good[n % 2], f"h{n}", config) for n in range(8)], transport)
    assert {way(outcome) for outcome in outcomes} == {transport}


def test_an_encrypted_key_is_named_and_works_with_an_agent(farm, agent, tmp_path):
    key = tmp_path / "secret key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "passphrase", "-f", key], check=True)
    with (farm.folder / "authorized").open("a") as stream:
        stream.write(key.with_suffix(".pub").read_text())
    config = farm.with_config(f"IdentityAgent {agent}", key=f'"{key}"')
    outcome = probe(farm.target(farm.good[0], config=config), "paramiko")
    assert outcome.state == "authentication failed"
    assert f"{key} is encrypted: ssh-add" in outcome.message
    ask = farm.script(farm.folder / "askpass", "echo passphrase")
    subprocess.run(
        ["ssh-add", "-q", key],
        check=True,
        env={**os.environ, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"},
    )
    assert way(probe(farm.target(farm.good[0], config=config), "paramiko")) == "paramiko"


@pytest.mark.parametrize("kind", [["rsa", "-b", "2048"], ["ecdsa", "-b", "384"], ["rsa", "-b", "2048", "-m", "PEM"]])
def test_keys_of_other_kinds_are_accepted(farm, tmp_path, kind):
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", key, "-t", *kind], check=True)
    with (farm.folder / "authorized").open("a") as stream:
        stream.write(key.with_suffix(".pub").read_text())
    assert way(probe(farm.target(farm.good[0], config=farm.with_config(key=key)), "paramiko")) == "paramiko"


def test_a_configuration_that_is_broken_is_the_message(farm):
    config = farm.folder / "broken"
    config.write_text("NoSuchOption yes\n")
    outcome = probe(farm.target(farm.good[0], config=config))
    assert (outcome.state, "NoSuchOption" in outcome.message.replace("nosuchoption", "NoSuchOption")) == (
        "unsupported",
        True,
    )


def test_ssh_is_asked_once_for_hosts_that_it_must_answer_alike(farm, monkeypatch):
    asked = []
    run = subprocess.run
    monkeypatch.setattr(
        ssh_config.subprocess, "run", lambda command, **more: asked.append(command[-1]) or run(command, **more)
    )
    config = farm.with_config(f"Host {farm.good[1]}\n  Compression no\nHost *.example\n  Port 1")
    targets = [farm.target(farm.good[n % 2], f"h{n}", config) for n in range(6)]
    assert {way(outcome) for outcome in probe_all(targets, "paramiko")} == {"paramiko"}
    assert sorted(asked) == sorted(farm.good)
    asked.clear()
    config = farm.with_config("Match exec true\n  Compression no")
    probe_all([farm.target(farm.good[n % 2], f"h{n}", config) for n in range(4)], "paramiko")
    assert len(asked) == 4


def test_paramiko_reads_the_configuration_without_openssh(farm, monkeypatch):
    monkeypatch.setattr(ssh_config.shutil, "which", lambda _: None)
    assert way(probe(farm.target(farm.good[0]), "auto")) == "paramiko"


@pytest.mark.timeout(200)
def test_an_interrupt_waits_for_no_host_and_leaves_nothing(farm, new_farm):
    slow = new_farm()
    address = slow.address()
    slow.start({address: [f"ForceCommand {slow.script(slow.folder / 'slow', 'exec sleep 400')}"]})
    slow.know(address)
    for transport in ("openssh", "paramiko"):
        running = pool.collect(
            [farm.target(farm.good[0]), *(slow.target(address, f"s{n}") for n in range(6))],
            script_for,
            replace(OPTIONS, seconds=400.0),
            16,
            transport,
        )
        assert next(running)[0].name == farm.good[0]
        running.close()
        assert children_of_ours() == []


def test_a_connection_that_drops_once_is_tried_again(farm, new_farm):
    odd = new_farm()
    address = odd.address()
    once = odd.script(
        odd.folder / "once",
        f'if mkdir {odd.folder}/was-here 2>/dev/null; then kill -9 $PPID; fi; exec sh -c "$SSH_ORIGINAL_COMMAND"',
    )
    odd.start({address: [f"ForceCommand {once}"]})
    odd.know(address)
    for transport in ("paramiko", "openssh"):
        assert way(probe(odd.target(address), transport)) == transport
        (odd.folder / "was-here").rmdir()
