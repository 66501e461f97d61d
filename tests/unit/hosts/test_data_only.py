"""A bare command in a folder of somebody else's: its files choose hosts, and run nothing on this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nodetune as package
from tests.support.commandline import nodetune

pytestmark = pytest.mark.slow  # each reads an inventory with Ansible, in a process of its own

FORGED = "#!/bin/sh\ntouch {ran}\necho '{{}}'\n"
COMMANDS = [("audit",), ("facts",), ("plan",), ("audit", "--limit", "all")]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder that somebody checked out, with a program in it, and a home."""
    folder = tmp_path / "checked-out"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "NODETUNE_CONFIG", "ANSIBLE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    program = folder / "evil.sh"
    program.write_text(FORGED.format(ran=tmp_path / "ran"))
    program.chmod(0o755)
    return folder


def ran(here):
    return (here.parent / "ran").exists()


def choose(here, inventory, content=""):
    (here / "nodetune.toml").write_text(f'inventory = "{inventory}"\n')
    if content:
        (here / inventory).write_text(content)


def refused(here, *words):
    done = nodetune(*(words or ("audit",)))
    assert (done.returncode, done.stdout, ran(here)) == (2, "", False)
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_an_inventory_that_is_a_program_does_not_run(here, words):
    choose(here, "./evil.sh")
    assert refused(here, *words) == (
        "nodetune: evil.sh is a program, and nodetune.toml:1 names this inventory: "
        "to trust it, name it with -i or in your own settings\n"
    )


def test_a_program_in_a_folder_of_inventories_does_not_run(here):
    (here / "all").mkdir()
    (here / "evil.sh").rename(here / "all" / "evil.sh")
    choose(here, "./all")
    assert "all/evil.sh is a program" in refused(here)


def test_the_table_of_pyproject_is_no_other_way(here):
    (here / "pyproject.toml").write_text('[tool.nodetune]\ninventory = "./evil.sh"\n')
    assert "pyproject.toml:2 names this inventory" in refused(here)


@pytest.mark.parametrize("file", ["cli", "own", "variable", "named"])
def test_a_program_that_the_user_names_runs(here, file, monkeypatch):
    words = []
    if file == "cli":
        words = ["-i", "./evil.sh"]
    elif file == "variable":
        monkeypatch.setenv("NODETUNE_INVENTORY", "./evil.sh")
    else:
        path = here.parent / "home/.config/nodetune/nodetune.toml" if file == "own" else here.parent / "ci.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'inventory = "{here}/evil.sh"\n')
        if file == "named":
            monkeypatch.setenv("NODETUNE_CONFIG", str(path))
    nodetune("audit", *words)
    assert ran(here)


def test_a_plugin_that_the_inventory_names_does_not_run(here):
    choose(here, "hosts.yml", "plugin: ansible.builtin.generator\nhosts: {name: a}\nlayers: {}\n")
    assert "names an inventory plugin" in refused(here)


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("ansible_host: \"{{ lookup('pipe', './evil.sh') }}\"", "ansible_host is a template"),
        ("ansible_ssh_common_args: -o ProxyCommand=./evil.sh", "-o ProxyCommand=./evil.sh may run programs"),
        ("ansible_ssh_extra_args: -oKnownHostsCommand=./evil.sh", "KnownHostsCommand=./evil.sh may run programs"),
        ("ansible_ssh_common_args: -F ssh_config", "-F ssh_config may run programs"),
        ("ansible_ssh_common_args: -CF ssh_config", "may run programs"),
        ("ansible_ssh_common_args: -o 'Include evil'", "-o Include evil may run programs"),
        (
            "ansible_connection: local\n      ansible_python_interpreter: ./evil.sh",
            "ansible_python_interpreter would run on this host",
        ),
    ],
)
def test_a_variable_that_runs_a_program_is_refused(here, variable, told):
    choose(here, "hosts.yml", f"all:\n  hosts:\n    gpu1:\n      {variable}\n")
    done = nodetune("audit", "--format", "lines")
    assert done.returncode == 3
    assert told in done.stdout + done.stderr
    assert "nodetune.toml:1 names this inventory" in done.stdout + done.stderr
    assert not ran(here)


def test_a_cached_answer_is_held_to_the_same_rule(here):
    choose(here, "hosts.yml", "all: {hosts: {gpu1: {ansible_ssh_common_args: -o ProxyCommand=./none}}}\n")
    nodetune("audit", "-i", "hosts.yml", "-l", "!all")  # reads it as the user's own choice
    done = nodetune("audit", "--format", "lines")
    assert "ProxyCommand=./none may run programs" in done.stdout + done.stderr


def test_an_ansible_cfg_there_is_not_used_for_it(here):
    choose(here, "hosts.yml", "all: {hosts: {gpu1: {ansible_host: 127.0.0.1, ansible_port: 1}}}\n")
    (here / "ansible.cfg").write_text("[defaults]\nvault_password_file = evil.sh\n")
    done = nodetune("audit")
    assert "ansible.cfg is ignored: nodetune.toml:1 names the inventory (-i uses it)" in done.stderr
    assert not ran(here)
    nodetune("audit", "-i", "hosts.yml")
    assert ran(here)


@pytest.mark.parametrize("setting", ['vault-password-file = "evil.sh"', 'vault-id = ["prod@evil.sh"]'])
def test_a_vault_program_that_the_folder_names_does_not_run(here, setting):
    choose(here, "hosts.yml", "all: {hosts: {gpu1: }}\n")
    with (here / "nodetune.toml").open("a") as stream:
        stream.write(setting + "\n")
    assert "is a program, which only a user may choose" in refused(here)


def test_a_module_in_the_current_folder_is_not_imported(here):
    for name in ("yaml", "click", "paramiko"):
        (here / f"{name}.py").write_text(f"open({str(here.parent / 'ran')!r}, 'w')\n")
    home = str(Path(package.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "nodetune", "audit", "--facts", "h200-x4", "-s", "swappiness-high"],
        env={**os.environ, "PYTHONPATH": home},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode in (0, 1, 3), done.stderr
    assert not ran(here)
