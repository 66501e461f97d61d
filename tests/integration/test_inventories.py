"""Inventories of which some hosts cannot be reached as they are: what the others come to, and what is said."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2])
ONE = ("-s", "max-map-count-low", "--timeout", "300")


@pytest.fixture
def known(farm):
    """Puts known_hosts back as it was."""
    before = farm.known_hosts.read_text()
    yield farm.known_hosts
    farm.known_hosts.write_text(before)


@pytest.fixture
def inventory(farm, tmp_path):
    """Write an INI inventory of the good hosts, with these variables of each."""

    def write(*variables):
        lines = (
            f"gpu{number} ansible_host={address} {more}"
            for number, (address, more) in enumerate(zip(farm.good, variables, strict=True), 1)
        )
        common = f"[all:vars]\nansible_ssh_common_args='-F {farm.config}'\n"
        (tmp_path / "hosts.ini").write_text("\n".join(lines) + f"\n{common}")

    return write


@pytest.fixture
def run(tmp_path):
    def call(*words):
        command = [sys.executable, "-m", "nodetune", *words]
        variables = {"PYTHONPATH": SOURCE, "COLUMNS": "100", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True, check=False
        )

    return call


def test_an_undefined_variable_outside_the_limit_is_ignored(inventory, run):
    inventory("", "ansible_user='{{ nope }}'")
    done = run("audit", "-i", "hosts.ini", "-l", "gpu1", "--format", "json", *ONE)
    assert [(each["name"], each["state"]) for each in json.loads(done.stdout)["hosts"]] == [("gpu1", "ok")]


def test_an_undefined_variable_fails_only_its_host(inventory, run):
    inventory("", "ansible_user='{{ nope }}'")
    done = run("audit", "-i", "hosts.ini", *ONE)
    assert (done.returncode, done.stderr) == (3, "")
    assert "bad variables  gpu2: in the inventory: ansible_user: 'nope' is undefined\n" in done.stdout
    assert "1 host audited, 1 not reached" in done.stdout


def test_an_undefined_variable_unrelated_to_logins_is_ignored(inventory, run):
    inventory("ansible_mirror='{{ ansible_distribution }}'", "")
    done = run("audit", "-i", "hosts.ini", "--format", "json", *ONE)
    assert {each["state"] for each in json.loads(done.stdout)["hosts"]} == {"ok"}


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_hosts_with_unknown_keys_are_one_line_with_a_command(inventory, run, known, transport):
    inventory("", "")
    known.write_text("")
    words = ("--transport", transport, "-i", "hosts.ini")
    done = run("audit", *words, *ONE)
    assert done.returncode == 3
    assert "  unknown host key  gpu[1-2]: their keys are not in known_hosts" in done.stdout
    settle = f"nodetune audit {' '.join(words)} -s max-map-count-low --accept-new-host-keys"
    assert f"  to do     {settle}" in done.stdout.splitlines()
    told = run("facts", *words, *ONE).stderr.splitlines()
    assert [line.split(": ")[:2] for line in told] == [["gpu[1-2]", "unknown host key"]]
    assert run(*settle.split()[1:], "--timeout", "300").returncode < 2
    assert "2 hosts audited" in run("audit", *words, *ONE).stdout
