"""What is proposed once a host has failed: the command that takes it up again, and nothing else."""

import shlex
from types import SimpleNamespace

import pytest

from nodetune.api.model import Absent, Value
from nodetune.cli import proposed_options, requests
from nodetune.cli.commands.provision import command
from nodetune.cli.main import group
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, TOO_SLOW
from nodetune.foundation.json_document import DocumentError
from nodetune.foundation.stage_output import Silent
from nodetune.foundation.yaml_lines import FileError
from nodetune.hosts.inventory import selection
from nodetune.hosts.target import Target
from nodetune.provision import STAGES, baseline, preflight, run, stages, upgrade
from nodetune.provision import lock as locks
from nodetune.provision.decide import VersionDecision
from nodetune.provision.lock import Versions
from nodetune.provision.record import Record, StageResult, failed
from nodetune.provision.request import OLDER, ProvisionRequest, ResumeCommand
from nodetune.provision.steps import Steps
from tests.support import provisioning
from tests.support.commandline import nodetune
from tests.support.provisioning import DRIVER, NEWER, running, site


class NoRun:
    """A run's folder that keeps nothing."""

    id = "20260101-000000"

    def add_event(self, _event):
        pass

    def save(self, _name, _document):
        pass


def requested(folder, *words):
    """The request of `provision` with these words on its command line."""
    site(folder)
    locks.write(folder / "v.lock", provisioning.lock())
    named = ["--site", str(folder / "site.yml"), "--lock", str(folder / "v.lock")]
    with command.make_context("provision", [*named, *words]) as context:
        return requests.partition(ProvisionRequest, context.params)["request"]


def test_a_dry_run_whose_only_host_is_refused_is_no_success(tmp_path):
    """This machine: it has no GPU, or no Debian 12 for the lock."""
    requested(tmp_path)
    done = nodetune("provision", "--site", "site.yml", "--lock", "v.lock", "--dry-run", cwd=tmp_path)
    assert done.returncode in (INCOMPLETE, END_STATE_MISSED), done.stdout
    assert done.stdout.startswith("not changed  ")
    assert "0 packages on 0 hosts, 1 problem. Nothing was changed." in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (provisioning.bare(), "no driver from NVIDIA's packages is installed: provision this host without --upgrade"),
        (
            running(packages__running_driver=Value({"version": "580.95.05", "open": True})),
            "driver 580.159.04 is installed but 580.95.05 is running, as after an interrupted upgrade",
        ),
    ],
)
def test_a_dry_run_refuses_what_the_upgrade_would_refuse(tmp_path, monkeypatch, facts, why):
    request = requested(tmp_path, "--upgrade", "--dry-run")
    monkeypatch.setattr(preflight, "seen", lambda *_: {facts.host: facts})
    found = preflight.check(request, request.selection.site.provision, [Target(facts.host)], provisioning.lock(NEWER))
    assert (found.decisions, run.dry_run(found, Silent())) == ({}, ({}, END_STATE_MISSED))
    assert why in found.came[facts.host].message


def proposed(request, host="gpu3", stage="packages"):
    """The words of the command after that host, alone in its run, has failed at this stage."""
    record = Record(NoRun(), [host], STAGES, request.resume_command)
    record.note(stage, {host: failed("no room on the disk")})
    return shlex.split(record.document()["hosts"][0]["next"])


def test_the_next_command_names_the_failed_host(tmp_path):
    words = proposed(requested(tmp_path, "-i", "prod", "-l", "gpu3"))
    assert words[:4] == ["nodetune", "provision", "-i", "prod"]
    assert words[words.index("-l") :] == ["-l", "gpu3", "--from", "packages"]
    words = proposed(requested(tmp_path, "-i", "gpu3"))
    assert words[words.index("-l") + 1] == "gpu3"


def test_the_next_command_of_a_run_on_this_very_host_names_none(tmp_path):
    words = proposed(requested(tmp_path), "localhost")
    assert words[:2] == ["nodetune", "provision"]
    assert "-l" not in words


def test_the_next_command_logs_in_and_drains_as_this_one_did(tmp_path):
    words = proposed(requested(tmp_path, "-i", "prod", "-u", "ubuntu", "-b", "--drain", "slurm"))
    assert ("-b" in words, words[words.index("-u") + 1], words[words.index("--drain") + 1]) == (True, "ubuntu", "slurm")
    assert "--assume-drained" not in words
    words = proposed(requested(tmp_path, "-i", "prod", "--assume-drained"))
    assert ("--assume-drained" in words, "--drain" in words) == (True, False)


def test_figures_are_reproduced_with_options_that_verify_has(tmp_path):
    request = requested(tmp_path, "-i", "prod", "-l", "gpu3", "-u", "ubuntu", "--drain", "slurm")
    assert proposed_options.text(request.connection) == "-i prod -l gpu3 -u ubuntu"


def test_hosts_are_drained_once_just_before_their_packages_change(tmp_path):
    request = requested(tmp_path, "-i", "prod", "-l", "gpu3", "--drain", "slurm")
    done = []

    def carried_out(name):
        return lambda hosts: done.append(name) or {host: StageResult() for host in hosts}

    named = {name: carried_out(name) for name in (*STAGES, "drain", "give_back")}
    record = Record(NoRun(), ["gpu3"], STAGES, request.resume_command)
    work = SimpleNamespace(**named, request=request, stopped="", begins=lambda *_: None)
    assert stages.provision(work, record) == 0
    assert done == ["preflight", "drain", *STAGES[1:], "give_back"]


# What restart_at it


def recorded(stage_names=STAGES, **came):
    """The next command of a host that came to this at these stages."""
    record = Record(
        NoRun(), ["gpu1"], stage_names, ResumeCommand(["-i", "prod"], "newer.lock"), stage_names is upgrade.STAGES
    )
    for stage, each in came.items():
        record.note(stage, {"gpu1": each})
    return record.again("gpu1")


def after_the_boot(facts):
    work = Steps.__new__(Steps)
    work.decisions = {"gpu1": VersionDecision(None, Versions(DRIVER))}
    return work._up("gpu1", facts, "the driver is not loaded")


def test_a_driver_that_is_not_loaded_resumes_at_the_packages(monkeypatch):
    """The booted kernel may be a newer one, whose headers only that stage installs."""
    monkeypatch.setattr(VersionDecision, "driver", DRIVER)
    gone = {"packages__running_driver": Absent(), "gpu__driver_version": Absent(), "modules__loaded": Value([])}
    assert recorded(reboot=after_the_boot(running(**gone))).endswith("-l gpu1 --from packages")
    other = {"packages__running_driver": Value({"version": "570.1", "open": True})}
    assert recorded(reboot=after_the_boot(running(**other))).endswith("-l gpu1 --from reboot")


def test_a_bad_lock_is_not_proposed_after_a_failed_rollback():
    told = recorded(upgrade.STAGES, after=failed("slower than before", TOO_SLOW), back=failed("not to be had"))
    command, _, words = told.partition("  # ")
    assert command == f"nodetune provision -i prod --lock {OLDER} -l gpu1"
    assert "the previous lock, from git" in words
    assert "held.json" in words


def test_a_restored_host_is_upgraded_again_even_if_slow():
    slow = failed("slower than before", TOO_SLOW)
    told = recorded(upgrade.STAGES, after=slow, back=failed("it is still slower: look at the hardware", TOO_SLOW))
    assert told == "nodetune provision -i prod --lock newer.lock -l gpu1 --upgrade"


# The baseline


@pytest.mark.parametrize("problem", [DocumentError("good.json: not JSON"), OSError(28, "No space left", "good.json")])
def test_a_failing_baseline_fails_hosts_and_keeps_them_drained(problem):
    class Failing:
        stopped = ""
        request = ProvisionRequest(drain="slurm")

        def begins(self, *_):
            return None

        def __getattr__(self, name):
            return self.fails if name == "verify" else lambda hosts: dict.fromkeys(hosts, StageResult())

        def fails(self, _hosts):
            raise problem

        def give_back(self, hosts):
            self.well = hosts

    work = Failing()
    record = Record(NoRun(), ["gpu1"], STAGES, ResumeCommand(["-i", "prod"], "v.lock"))
    assert stages.provision(work, record) == END_STATE_MISSED
    (host,) = record.document()["hosts"]
    assert {each["stage"]: each["state"] for each in host["stages"]}["verify"] == "failed"
    assert "good.json: no" in next(each["message"] for each in host["stages"] if each["stage"] == "verify")
    assert host["next"].endswith("-l gpu1 --from verify")
    assert work.well == []


def test_a_bad_baseline_is_reported_before_any_host_is_asked(tmp_path, monkeypatch):
    locks.write(tmp_path / "v.lock", provisioning.lock())
    site(tmp_path, provisioning.SITE + "  baseline: good.json\n")
    (tmp_path / "good.json").write_text("{")
    monkeypatch.setattr(selection, "selected", lambda _: [])
    monkeypatch.setattr(preflight, "check", lambda *_: pytest.fail("hosts were asked"))
    words = ["provision", "-i", "prod", "--site", str(tmp_path / "site.yml"), "--lock", str(tmp_path / "v.lock")]
    with pytest.raises(FileError, match=r"good\.json: not JSON"):
        group.main([*words, "--yes"], prog_name="nodetune", standalone_mode=False)


def test_a_baseline_in_an_impossible_folder_is_refused_early(tmp_path):
    baseline.check(None)
    baseline.check(tmp_path / "new" / "newer" / "good.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="the folder does not exist"):
        baseline.check(tmp_path / "file" / "good.json")
