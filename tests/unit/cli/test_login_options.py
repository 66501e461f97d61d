"""--private-key, --port and the vault options: what they change, and where their secrets go."""

import os
import sys
import warnings

import pytest
from click.testing import CliRunner

from nodetune.audit.request import CollectRequest
from nodetune.cli import host_options, proposed_options, requests
from nodetune.cli.commands import facts
from nodetune.cli.main import group
from nodetune.hosts.connection_options import Cluster, ConnectionOptions, SessionOptions, Vault
from nodetune.hosts.inventory import selection
from nodetune.hosts.patterns import InventoryError
from nodetune.remediation.runs.connection import RECORDED, connection_record
from tests.support.commandline import nodetune

SECRET = "open-sesame"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with an inventory whose one host has an encrypted user, and with the file of the password."""
    monkeypatch.chdir(tmp_path)
    for name in ("ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST"):
        monkeypatch.delenv(name, raising=False)
    text = "\n".join(" " * 8 + line for line in encrypted("bob").splitlines())
    (tmp_path / "hosts.yml").write_text(f"all:\n  hosts:\n    a:\n      ansible_user: !vault |\n{text}\n")
    (tmp_path / "pass").write_text(f"{SECRET}\n")
    (tmp_path / "wrong").write_text("not that\n")
    return tmp_path


def encrypted(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ansible.parsing.vault import VaultLib, VaultSecret

        return VaultLib().encrypt(text, VaultSecret(SECRET.encode())).decode()


def parsed(*words, typed=""):
    """The connection options of a command line; `typed` is what a user answers."""
    found = []

    @requests.command("x", CollectRequest)
    @host_options.hosts_or_nodes
    def command(request):
        found.append(request.connection)

    done = CliRunner().invoke(command, [*map(str, words)], input=typed)
    assert done.exit_code == 0, done.output
    assert SECRET not in done.output
    return found[0]


def user(reach):
    (target,) = selection.selected(reach)
    return target.user or target.problem


def test_key_and_port_hold_for_every_host():
    (target,) = selection.selected(ConnectionOptions(inventory="gpu1", private_key="id", port=2222))
    assert (target.key_file, target.port) == ("id", 2222)


def test_a_missing_key_and_an_invalid_port_are_refused(here):
    assert "'nosuch' does not exist" in nodetune("facts", "--private-key", "nosuch").stderr
    assert "70000 is not in the range" in nodetune("facts", "--port", "70000").stderr


def test_the_port_is_connected_to(here):
    done = nodetune("facts", "-i", "127.0.0.1", "--port", 1, "--timeout", 60)
    assert "127.0.0.1 port 1 refused the connection" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--vault-password-file", "pass"),
        ("--vault-id", "prod@pass"),
        ("--vault-id", "pass"),
        ("--vault-id", "other@wrong", "--vault-id", "prod@pass"),
    ],
)
def test_a_file_with_the_password_opens_the_vault(here, words):
    assert user(parsed("-i", "hosts.yml", *words)) == "bob"


@pytest.mark.parametrize("words", [("--ask-vault-pass",), ("--vault-id", "prod@prompt"), ("--vault-id", "prompt")])
def test_a_typed_password_opens_the_vault(here, words):
    assert user(parsed("-i", "hosts.yml", *words, typed=f"{SECRET}\n")) == "bob"


def test_a_wrong_password_fails_the_host_and_names_the_options(here):
    told = user(parsed("-i", "hosts.yml", "--vault-password-file", "wrong"))
    assert "none of the given passwords opens it: use --ask-vault-pass, --vault-password-file" in told


def test_a_program_gives_the_password(here):
    program = here / "ask"
    program.write_text(f"#!/bin/sh\necho {SECRET}\n")
    program.chmod(0o755)
    assert user(parsed("-i", "hosts.yml", "--vault-password-file", "ask")) == "bob"
    program.chmod(0o777)
    with pytest.raises(InventoryError, match="ask is a program and is not run: every user can write"):
        user(parsed("-i", "hosts.yml", "--vault-password-file", "ask"))


def test_a_password_file_that_is_missing_is_one_line(here):
    with pytest.raises(InventoryError, match="the vault password file nosuch is missing"):
        user(parsed("-i", "hosts.yml", "--vault-id", "prod@nosuch"))


def test_a_typed_password_is_in_no_argument_variable_or_file(here):
    """A program of the inventory looks at the process that reads it, and at its own environment."""
    looks = here / "looks.py"
    looks.write_text(
        f"#!{sys.executable}\nimport json, os\nabove = f'/proc/{{os.getppid()}}'\n"
        "seen = [open(f'{above}/{name}', 'rb').read() for name in ('cmdline', 'environ')] + "
        "[repr(os.environ).encode()]\n"
        f"found = any(b'{SECRET}' in each for each in seen)\n"
        "print(json.dumps({'all': {'hosts': ['leak' if found else 'none']}, '_meta': {'hostvars': {}}}))\n"
    )
    looks.chmod(0o755)
    reach = parsed("-i", "./looks.py", "--ask-vault-pass", typed=f"{SECRET}\n")
    assert [target.name for target in selection.selected(reach)] == ["none"]
    assert SECRET not in repr(reach)


def test_the_descriptors_of_a_vault_are_closed(here):
    reach = parsed("-i", "hosts.yml", "--vault-password-file", "pass")
    before = sorted(os.listdir("/proc/self/fd"))
    selection.selected(reach)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_proposed_commands_have_the_login_options(here):
    reach = parsed(
        "-i", "gpu1", "--private-key", "pass", "--port", 22, "--vault-id", "a@pass", "--ask-vault-pass", typed="x\n"
    )
    assert proposed_options.text(reach) == "-i gpu1 --private-key pass --port 22 --vault-id a@pass --ask-vault-pass"


def test_the_record_of_a_run_has_the_login_without_the_password(here):
    reach = ConnectionOptions(private_key="id", port=7, vault=Vault((("a", "pass"),), (("b", SECRET),)))
    way = connection_record(reach)
    assert way["private_key"] == str(here / "id")
    assert way["vault_id"] == [f"a@{here}/pass", "b@prompt"]
    assert SECRET not in repr(way)
    assert set(way) == set(RECORDED)


def test_srun_takes_no_login():
    done = CliRunner().invoke(group, ["facts", "--transport", "slurm", "--port", "22"], prog_name="nodetune")
    assert done.exit_code == 2
    assert "--port is for SSH only" in done.output


@pytest.mark.parametrize("option", [("-u", "x"), ("-b",), ("-K",), ("--port", "22")])
def test_a_cluster_takes_no_login(option):
    done = CliRunner().invoke(group, ["facts", "--transport", "kubernetes", *option], prog_name="nodetune")
    assert done.exit_code == 2
    assert f"{option[0]} is for SSH only: the kubeconfig says who you are" in done.output


@pytest.mark.parametrize("option", ["--context", "--namespace", "--image"])
def test_options_of_a_cluster_need_its_transport(option):
    done = CliRunner().invoke(group, ["facts", option, "x"], prog_name="nodetune")
    assert done.exit_code == 2
    assert f"{option} needs --transport kubernetes" in done.output


def test_proposed_commands_have_the_cluster(here):
    cluster = Cluster("prod", "gpu-tools", "registry/nodetune-node:1")
    reach = ConnectionOptions("nodes: gpu=1", transport="kubernetes", options=SessionOptions(cluster=cluster))
    asked = (
        "--transport kubernetes --context prod --namespace gpu-tools --image registry/nodetune-node:1 -i 'nodes: gpu=1'"
    )
    assert proposed_options.text(reach) == asked
    assert proposed_options.text(ConnectionOptions(transport="kubernetes")) == "--transport kubernetes"


def test_a_selector_in_a_settings_file_is_no_path(tmp_path):
    option = next(each for each in facts.command.params if each.name == "inventory")
    assert option.locate(tmp_path, "nodes: nvidia.com/gpu.present=true") == "nodes: nvidia.com/gpu.present=true"
