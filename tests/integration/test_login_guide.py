"""The ways to log in of docs/logins.md, typed as it says: a jump host, and an inventory that Ansible Vault encrypts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2])
VAULT = Path(sys.executable).with_name("ansible-vault")
ONE = ("-s", "max-map-count-low", "--timeout", "300", "--fail-on", "never", "--format", "json")


@pytest.fixture
def run(tmp_path):
    """Audit as a user types it; return the states of the hosts, or the process where it was refused."""

    def call(*words, **variables):
        told = {"PYTHONPATH": SOURCE, "COLUMNS": "100", "XDG_CACHE_HOME": str(tmp_path / "cache"), **variables}
        command = [sys.executable, "-m", "nodetune", "audit", *words, *ONE]
        return subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **told}, capture_output=True, text=True, check=False
        )

    return call


def states(done):
    return {each["name"]: each["state"] for each in json.loads(done.stdout)["hosts"]}


@pytest.fixture
def inner(farm, new_farm):
    """A second sshd, with its own host key and port, that only takes logins that come through the first."""
    made = new_farm()
    made.good = [made.address()]
    made.start(dict.fromkeys(made.good, ()))
    (made.folder / "authorized").write_text((farm.folder / "authorized").read_text())
    with farm.known_hosts.open("a") as stream:
        stream.write(f"[{made.good[0]}]:{made.port} {' '.join(made.host_key.split()[:2])}\n")
    return made


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_a_jump_host_in_the_inventory_is_used(farm, inner, run, tmp_path, transport):
    log = farm.folder / "log-0"
    before = log.read_text().count("Accepted publickey")
    jump = f"-o ProxyJump={farm.user}@{farm.good[0]}:{farm.port}"
    (tmp_path / "hosts.ini").write_text(
        f"gpu1 ansible_host={inner.good[0]} ansible_port={inner.port} ansible_ssh_common_args='-F {farm.config} {jump}'\n"
    )
    done = run("-i", "hosts.ini", "--transport", transport)
    assert states(done) == {"gpu1": "ok"}, done.stdout
    assert log.read_text().count("Accepted publickey") > before, "the login went through the jump host"


def test_a_jump_host_in_the_ssh_configuration_is_used(farm, inner, run, tmp_path):
    log = farm.folder / "log-0"
    before = log.read_text().count("Accepted publickey")
    host = f"Host gpu*\n  HostName {inner.good[0]}\n  Port {inner.port}\n  ProxyJump {farm.user}@login1:{farm.port}\n"
    config = farm.with_config(
        f"{host}Host login1\n  HostName {farm.good[0]}\n  HostKeyAlias [{farm.good[0]}]:{farm.port}\n"
    )
    (tmp_path / "hosts.ini").write_text(f"gpu1 ansible_ssh_common_args='-F {config}'\n")
    done = run("-i", "hosts.ini")
    assert states(done) == {"gpu1": "ok"}, done.stdout
    assert log.read_text().count("Accepted publickey") > before, "the login went through the jump host"


@pytest.fixture
def vaulted(farm, tmp_path):
    """An inventory whose user name is in a file that ansible-vault encrypted; the password file."""
    password = tmp_path / "password"
    password.write_text("open sesame\n")
    common = f"-F {farm.config}"
    (tmp_path / "hosts.ini").write_text(
        f"[gpu]\ngpu1 ansible_host={farm.good[0]}\n[gpu:vars]\nansible_ssh_common_args='{common}'\n"
    )
    secret = tmp_path / "group_vars" / "gpu.yml"
    secret.parent.mkdir()
    secret.write_text(f"ansible_user: {farm.user}\n")
    subprocess.run([VAULT, "encrypt", "--vault-password-file", password, secret], check=True, capture_output=True)
    assert secret.read_text().startswith("$ANSIBLE_VAULT;")
    return password


@pytest.mark.parametrize("way", ["option", "labelled", "variable", "ansible.cfg", "program"])
def test_a_vaulted_inventory_opens_in_every_documented_way(vaulted, run, tmp_path, way):
    words, variables = (), {}
    if way == "option":
        words = ("--vault-password-file", str(vaulted))
    elif way == "labelled":
        words = ("--vault-id", f"prod@{vaulted}")
    elif way == "variable":
        variables = {"ANSIBLE_VAULT_PASSWORD_FILE": str(vaulted)}
    elif way == "ansible.cfg":
        (tmp_path / "ansible.cfg").write_text(f"[defaults]\nvault_password_file = {vaulted}\n")
    else:
        program = tmp_path / "password.sh"
        program.write_text(f"#!/bin/sh\ncat {vaulted}\n")
        program.chmod(0o755)
        words = ("--vault-password-file", str(program))
    done = run("-i", "hosts.ini", *words, **variables)
    assert states(done) == {"gpu1": "ok"}, done.stderr
    assert "sesame" not in done.stdout + done.stderr


@pytest.mark.parametrize("password", [None, "wrong"])
def test_a_vault_that_does_not_open_names_the_options(vaulted, run, password):
    vaulted.write_text(f"{password}\n")
    done = run("-i", "hosts.ini", *(("--vault-password-file", str(vaulted)) if password else ()))
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode in (2, 3)
    assert "Traceback" not in told
    assert "--vault-password-file" in told
