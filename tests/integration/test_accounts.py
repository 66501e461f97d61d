"""Passwords and sudo, in a mount namespace with accounts of its own: nothing of this machine is changed."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from test_hostile_hosts import ASKED
from test_logins import OPTIONS, probe, script_for, way

from nodetune.hosts.target import Target
from nodetune.remote import payload, pool

PASSWORD = "Correct horse ✓ 'quoted' $HOME"
"""What a person might choose: not ASCII, with characters that a shell would act on."""

ENTER = """
set -e
mount --make-rprivate /
for name in passwd shadow sudoers; do mount --bind {folder}/$name /etc/$name; done
for name in sudo sudo-i; do [ ! -e /etc/pam.d/$name ] || mount --bind {folder}/pam /etc/pam.d/$name; done
exec "$@"
"""


def hashed(password):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to hash a password with")
    done = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input=password, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def accounts(new_farm):
    """A farm whose users are asker (sudo wants a password), free (it does not) and nobody2 (it refuses)."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("accounts of its own need root and mount namespaces")
    if shutil.which("sudo") is None:
        pytest.skip("no sudo on this machine: apt install sudo (CI does)")
    farm = new_farm()
    users = {"asker": 4801, "free": 4802, "refused": 4803}
    secret = hashed(PASSWORD)
    lines = {name: f"{name}:x:{uid}:{uid}::/tmp:/bin/sh\n" for name, uid in users.items()}
    (farm.folder / "passwd").write_text(Path("/etc/passwd").read_text() + "".join(lines.values()))
    (farm.folder / "shadow").write_text(
        Path("/etc/shadow").read_text() + "".join(f"{name}:{secret}:20000:0:99999:7:::\n" for name in users)
    )
    (farm.folder / "shadow").chmod(0o600)
    (farm.folder / "sudoers").write_text(
        "Defaults lecture=always\nroot ALL=(ALL) ALL\nasker ALL=(ALL) ALL\nfree ALL=(ALL) NOPASSWD: ALL\n"
    )
    (farm.folder / "sudoers").chmod(0o440)
    (farm.folder / "pam").write_text(
        "auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n"
    )
    enter = farm.script(farm.folder / "enter", ENTER.format(folder=farm.folder))
    python = farm.bin / "python3"
    python.write_text("#!/bin/sh\nexec /usr/bin/env -i PATH=/usr/bin:/bin " + str(_any_python()) + ' "$@"\n')
    farm.address1 = farm.address()
    farm.start(
        {farm.address1: []},
        "PasswordAuthentication yes",
        "KbdInteractiveAuthentication no",
        prefix=("unshare", "-m", str(enter)),
    )
    farm.know(farm.address1)
    return farm


def _any_python():
    """A Python that every user may run."""
    for python in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(python).exists():
            return python
    import sys

    real = Path(sys.executable).resolve()
    for folder in real.parents:
        if folder.stat().st_mode & 0o001 == 0:
            pytest.skip(f"{real} may be run by root only, and there is no other python3")
    return real


def target(accounts, user, **more):
    more.setdefault("password", None)
    return accounts.target(accounts.address1, user=user, python=str(accounts.bin / "python3"), **more)


def uid_of(outcome):
    way(outcome)
    return outcome.about["uid"]


def test_a_login_by_password(accounts):
    empty = accounts.with_config(key=accounts.folder / "nothing")
    assert way(probe(target(accounts, "asker", password=PASSWORD, config=empty), "paramiko")) == "paramiko"
    wrong = probe(target(accounts, "asker", password="wrong-password", config=empty), "paramiko")
    assert wrong.state == "authentication failed"
    assert "password" in wrong.message
    assert "wrong-password" not in wrong.message


def test_openssh_with_a_password_names_the_missing_sshpass(accounts, monkeypatch):
    empty = accounts.with_config(key=accounts.folder / "nothing")
    asked = target(accounts, "asker", password=PASSWORD, config=empty)
    if shutil.which("sshpass"):
        assert way(probe(asked, "openssh")) == "openssh"
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, *more, **how: None if name == "sshpass" else which(name, *more, **how)
    )
    refused = probe(asked, "openssh")
    assert (refused.state, "sshpass" in refused.message) == ("unsupported", True)


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_sudo_with_a_password_without_one_and_refused(accounts, transport):
    def become(user, password=None):
        return probe(target(accounts, user, become=True, become_password=password), transport)

    assert uid_of(become("asker", PASSWORD)) == 0
    assert uid_of(become("free")) == 0
    assert uid_of(become("free", PASSWORD)) == 0, "a password that sudo does not ask for is not sent"
    assert uid_of(probe(target(accounts, "asker"), transport)) == 4801
    for outcome, says in (
        (become("asker"), "--ask-become-pass"),
        (become("asker", "wrong-password"), "did not accept the password"),
        (become("refused", PASSWORD), "sudo"),
    ):
        assert (outcome.state, says in outcome.message) == ("become failed", True), outcome.message
        assert "wrong-password" not in outcome.message
        assert PASSWORD not in outcome.message


def test_sudo_to_a_user_that_is_not_root(accounts):
    outcome = probe(target(accounts, "free", become=True, become_user="asker"))
    assert uid_of(outcome) == 4801


def test_the_password_is_sent_to_nothing_but_the_prompt_of_sudo(accounts):
    """A sudo that never asks, runs nothing, and keeps what it is told."""
    fake = accounts.folder / "fake-bin"
    fake.mkdir()
    heard = accounts.folder / "heard"
    heard.touch()
    heard.chmod(0o666)
    accounts.script(fake / "sudo", f"echo 'Password:' >&2; timeout 2 cat > {heard}; exit 1")
    shell = accounts.script(
        accounts.folder / "fake-shell", f'PATH={fake}:$PATH; export PATH; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    )
    address = accounts.address()
    accounts.start({address: [f"ForceCommand {shell}"]})
    accounts.know(address)
    outcome = probe(accounts.target(address, become=True, become_password=PASSWORD))
    assert outcome.state == "become failed"
    assert heard.read_text() == ""


def test_a_host_that_says_the_password_back_is_not_quoted(accounts):
    shell = accounts.script(
        accounts.folder / "parrot",
        'prompt=$(echo "$SSH_ORIGINAL_COMMAND" | sed -n "s/.*-p \\([^ ]*\\) .*/\\1/p"); printf %s "$prompt" >&2; read -r said; echo "sudo: $said" >&2; exit 1',
    )
    address = accounts.address()
    accounts.start({address: [f"ForceCommand {shell}"]})
    accounts.know(address)
    outcome = probe(accounts.target(address, become=True, become_password=PASSWORD))
    assert outcome.state == "become failed"
    assert "(password)" in outcome.message
    assert PASSWORD not in outcome.message


def test_no_process_list_shows_a_password(accounts):
    """Neither ours nor the host's, while the command runs."""
    log = accounts.folder / "processes"
    shell = accounts.script(accounts.folder / "look", f'ps -eo args > {log}; exec sh -c "$SSH_ORIGINAL_COMMAND"')
    address = accounts.address()
    accounts.start({address: [f"ForceCommand {shell}"]})
    accounts.know(address)
    for transport in ("openssh", "paramiko"):
        probe(
            accounts.target(
                address, password=PASSWORD if transport == "paramiko" else None, become=True, become_password=PASSWORD
            ),
            transport,
        )
        shown = log.read_text()
        assert "ps -eo args" in shown
        assert "Correct horse" not in shown


def test_passwords_are_in_no_representation():
    shown = repr(Target("h", password="secret-one", become_password="secret-two"))
    assert "secret" not in shown


def test_this_host_as_another_user(accounts):
    """Without a login: the probe goes through sudo only when it must."""
    asked = Target(socket.gethostname(), connection="local", become=True, become_user="root")
    ((_, outcome, _),) = pool.collect([asked], script_for, OPTIONS, asked=ASKED)
    assert uid_of(outcome) == 0
    other = Target(
        socket.gethostname(), connection="local", become=True, become_user="nobody", python=str(_any_python())
    )
    ((_, outcome, _),) = pool.collect([other], lambda _: payload.script(ASKED, 5.0), OPTIONS, asked=ASKED)
    assert uid_of(outcome) == 65534
