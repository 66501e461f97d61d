"""The tutorial's hosts: its commands start sshds that an audit reaches; one that was ended is named, with exit code 3."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.farm import held_port
from tests.support import commandline

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")


@pytest.fixture
def fleet(sshd, tmp_path):
    """The folder of the hosts, which listen where nobody else does."""
    commands = re.search(r"^```bash\n(.*?)^```", TUTORIAL, re.DOTALL | re.MULTILINE)[1]
    held = [held_port() for _ in range(2)]
    ports = {old: str(each.getsockname()[1]) for old, each in zip(("2201", "2202"), held, strict=True)}
    for old, new in {**ports, "/tmp/fleet": str(tmp_path / "fleet"), "127.0.0.1": "127.0.0.2"}.items():
        commands = commands.replace(old, new)
    subprocess.run(["bash", "-e", "-c", commands], check=True)
    pids = [tmp_path / "fleet" / f"{port}.pid" for port in ports.values()]
    while not all(pid.exists() and pid.read_text() for pid in pids):  # sshd writes it once it listens
        time.sleep(0.05)
    yield tmp_path, pids
    for pid in pids:
        if pid.exists():
            end(pid)
    for each in held:
        each.close()


def end(pid):
    subprocess.run(["kill", pid.read_text().strip()], check=True)


def audit(folder):
    return commandline.nodetune("audit", "-i", folder / "fleet.yml", "--timeout", "600")


def test_the_hosts_of_the_tutorial_are_reached_until_one_goes_down(fleet):
    folder, pids = fleet
    whole = audit(folder)
    assert whole.returncode in (0, 1)
    assert "2 hosts audited" in whole.stdout
    end(pids[1])
    part = audit(folder)
    assert part.returncode == 3
    assert re.search(r"^ *refused +node2\b", part.stdout, re.MULTILINE)
    assert "1 host audited, 1 not reached" in part.stdout
