"""Which Python Ansible's modules run with: the one that the probe has just run with, where Ansible can use it."""

import sys

import pytest

from nodetune.api.model import HostFacts
from nodetune.facts import document
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target
from nodetune.probe import main as probe
from nodetune.remediation.ansible.inventory import PlayInventory, as_probed
from nodetune.remediation.runs import record

PYENV = "/home/jo/.pyenv/versions/3.11.7/bin/python3.11"


def interpreter(target, **about):
    found = as_probed(target, HostFacts("gpu1", {}, about))
    return PlayInventory(SessionOptions()).variables(found)["ansible_python_interpreter"]


@pytest.mark.parametrize(
    ("about", "used"),
    [
        ({"interpreter": PYENV, "python": "3.11.7"}, PYENV),
        ({"interpreter": "/usr/libexec/platform-python3.6", "python": "3.6.8"}, "auto_silent"),
        ({"interpreter": "/tmp/x; reboot", "python": "3.11.7"}, "auto_silent"),
        ({"interpreter": "python3", "python": "3.11.7"}, "auto_silent"),
        ({"interpreter": ["/usr/bin/python3"], "python": 3}, "auto_silent"),
        ({"python": "3.11.7"}, "auto_silent"),
        ({}, "auto_silent"),
    ],
)
def test_a_play_uses_the_python_that_the_probe_ran_with(about, used):
    assert interpreter(Target("gpu1", address="192.0.2.1"), **about) == used


def test_a_python_that_the_inventory_names_stays():
    named = Target("gpu1", address="192.0.2.1", python="/opt/python3")
    assert interpreter(named, interpreter=PYENV, python="3.11.7") == "/opt/python3"
    assert interpreter(Target("here", connection="local"), interpreter=PYENV, python="3.11.7") == sys.executable
    assert as_probed(named, None) == named


def test_a_probe_says_which_python_it_ran_with():
    assert probe.document([], 5.0)["about"]["interpreter"] == sys.executable


def test_anonymous_facts_do_not_have_the_path_of_a_python():
    """It may lie in a user's home."""
    about = document.anonymous(HostFacts("gpu1", {}, {"interpreter": PYENV, "python": "3.11.7"})).about
    assert ("interpreter" in about, about["python"]) == (False, "3.11.7")


def test_a_rollback_knows_the_python_of_its_run(tmp_path):
    with record.recorded("apply", {}, ["gpu1", "gpu2"], None, tmp_path) as run:
        run.save_facts(HostFacts("gpu1", {}, {"interpreter": PYENV, "python": "3.11.7"}))
    found = as_probed(Target("gpu1"), record.find(run.id, tmp_path).facts("gpu1"))
    assert found.python == PYENV
    assert run.facts("gpu2") is None
