"""What is proposed once a host has failed: the command that takes it up again, and nothing else."""

import shlex

from nodetune import workflow
from nodetune.commands import _provision
from nodetune.provision import STAGES
from nodetune.provision import lock as locks
from nodetune.provision.record import Record, failed
from tests import provisioning
from tests.provisioning import site


class NoRun:
    """A run's folder that keeps nothing."""

    id = "20260101-000000"

    def add_event(self, _event):
        pass

    def save(self, _name, _document):
        pass


def options(folder, **given):
    """The options of `provision` as they were typed."""
    site(folder)
    locks.write(folder / "v.lock", provisioning.lock())
    usual = {
        **dict.fromkeys(("inventory", "limit", "user")),
        **dict.fromkeys(("become", "ask_become_pass", "accept_new_host_keys", "assume_drained"), False),
        "forks": 64,
        "timeout": 40,
        "transport": "auto",
        "drain_wait": 60,
        "reboot_wait": 30,
        "profiles": (),
        "site": folder / "site.yml",
        "lock": folder / "v.lock",
    }
    return {**usual, **given}


def proposed(monkeypatch, options, host="gpu3", stage="packages", drain=False):
    """The words of the command after that host, alone in its run, has failed at this stage."""
    monkeypatch.setattr(workflow.Reach, "targets", lambda _: [])
    record = Record(NoRun(), [host], STAGES, _provision._given(options, drain).typed)
    record.note(stage, {host: failed("no room on the disk")})
    return shlex.split(record.document()["hosts"][0]["next"])


def test_the_next_command_is_for_the_host_that_failed_whichever_hosts_were_named(tmp_path, monkeypatch):
    words = proposed(monkeypatch, options(tmp_path, inventory="prod", limit="gpu3"))
    assert words[:4] == ["nodetune", "provision", "-i", "prod"]
    assert words[words.index("-l") :] == ["-l", "gpu3", "--from", "packages"]
    words = proposed(monkeypatch, options(tmp_path, inventory="gpu3"))
    assert words[words.index("-l") + 1] == "gpu3"


def test_the_next_command_of_a_run_on_this_very_host_names_none(tmp_path, monkeypatch):
    assert "-l" not in proposed(monkeypatch, options(tmp_path), "localhost")


def test_the_next_command_logs_in_and_drains_as_this_one_did(tmp_path, monkeypatch):
    words = proposed(monkeypatch, options(tmp_path, inventory="prod", user="ubuntu", become=True), drain=True)
    assert ("-b" in words, words[words.index("-u") + 1], words[words.index("--drain") + 1]) == (True, "ubuntu", "slurm")
    assert "--assume-drained" not in words
    words = proposed(monkeypatch, options(tmp_path, inventory="prod", assume_drained=True))
    assert ("--assume-drained" in words, "--drain" in words) == (True, False)


def test_figures_are_reproduced_with_options_that_verify_has(tmp_path, monkeypatch):
    monkeypatch.setattr(workflow.Reach, "targets", lambda _: [])
    given = _provision._given(options(tmp_path, inventory="prod", limit="gpu3", user="ubuntu"), True)
    assert given.asked == "-i prod -l gpu3 -u ubuntu"
