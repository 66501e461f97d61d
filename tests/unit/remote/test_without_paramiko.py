"""An installation without paramiko or Ansible, as the zipapp is."""

import importlib.util
import sys

import pytest

from tests.support.commandline import nodetune

WHY = "is not installed here (the zipapp has neither Ansible nor paramiko)"


@pytest.fixture
def lacking(monkeypatch):
    """Makes libraries missing: None in sys.modules is what import takes for that."""
    real = importlib.util.find_spec

    def lack(*names):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name in names else real(name, *more)
        )
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return lack


def test_auto_uses_openssh_where_paramiko_is_missing(lacking):
    lacking("paramiko")
    done = nodetune("audit", "-i", "127.0.0.1:1,", "--timeout", "60")
    assert done.returncode == 3
    assert "ssh: connect to host 127.0.0.1 port 1: Connection refused" in " ".join(done.stdout.split())


def test_paramiko_that_is_asked_for_and_missing_is_one_line(lacking):
    lacking("paramiko")
    done = nodetune("audit", "-i", "127.0.0.1:1,", "--transport", "paramiko")
    assert (done.returncode, done.stderr) == (2, f"nodetune: paramiko {WHY}: use --transport openssh\n")


def test_an_inventory_without_ansible_is_one_line(lacking, tmp_path):
    lacking("ansible")
    (tmp_path / "hosts.ini").write_text("node1\n")
    done = nodetune("audit", "-i", "hosts.ini", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"nodetune: hosts.ini: ansible-core, which reads inventories, {WHY}: name the hosts: -i 'gpu[001-128]'\n"
    )


def test_another_library_that_is_missing_is_one_line(lacking, tmp_path):
    lacking("yaml")
    (tmp_path / "site.yml").write_text("checks: {}\n")
    done = nodetune("profile", "validate", tmp_path / "site.yml")
    assert done.returncode == 2
    assert done.stderr == f"nodetune: yaml {WHY}: install nodetune's wheel with its dependencies\n"
