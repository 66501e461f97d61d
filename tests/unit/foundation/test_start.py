"""Programs of this Python that nodetune starts import nothing of the folder in which it was started."""

import subprocess
import sys

import pytest

from nodetune import __version__
from nodetune.foundation import paths
from nodetune.remediation.ansible.workspace import Workspace

TRAPS = ("nodetune", "ansible", "click", "runpy", "pkgutil", "yaml", "json", "argparse", "statistics")


@pytest.fixture
def trapped(tmp_path, monkeypatch):
    """The current folder has modules with the names of those that are imported. Whatever imports one leaves a mark."""
    for name in TRAPS:
        (tmp_path / f"{name}.py").write_text("open('hacked', 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    yield tmp_path
    assert not (tmp_path / "hacked").exists()


def said(command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_nodetune_starts_itself_in_any_folder(trapped):
    assert said([*paths.start(), "--version"]) == f"nodetune {__version__}\n"


def test_an_agent_that_collects_facts_runs_nothing_of_the_folder(trapped):
    tools = pytest.importorskip("mcp") and __import__("nodetune.cli.agent_tools", fromlist=["Sources"])
    assert "1 fact file" in tools.Sources(str(trapped / "facts"), hosts=("-i", "localhost")).collect()


def test_ansible_without_a_program_of_its_own_runs_nothing_of_the_folder(trapped, monkeypatch):
    """As pip --target installs it."""
    python = sys.executable
    monkeypatch.setattr(sys, "executable", str(trapped / "python3"))
    command = Workspace(trapped / "play").command(["ansible-playbook", "--version"])
    words = command[command.index("-c") - 1 :]
    assert words[0] == sys.executable
    assert "[core " in said([python, *words[1:]])
