"""What hurts on the hundredth day: proposed commands that forget an option, formats that lack, lines that repeat."""

import csv
import io
import json
from types import SimpleNamespace

import click
import jsonschema
import pytest
from rich.console import Console

from nodetune.api.model import Finding, HostResult
from nodetune.audit import explain
from nodetune.checks import load
from nodetune.cli import change_options
from nodetune.cli.commands import _apply
from nodetune.foundation import paths
from nodetune.guard.deploy.nodes import NodeAnswer
from nodetune.guard.deploy.playbooks import GuardReport
from nodetune.guard.deploy.resume import Fate
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.outcomes import StepOutcome
from nodetune.remediation.runs import record
from nodetune.report import apply_rows, rows, verify_rows
from nodetune.report.text import apply, audit, guard
from nodetune.report.text.lines import Lines
from nodetune.verify.model import FAILED, SHORT, Expectation, Figure, Unmeasured, Verdict
from nodetune.verify.run import HostVerification
from tests.support.commandline import nodetune

JUDGED = "-p inference --site site.yml"


def told(write, *arguments):
    stream = io.StringIO()
    write(stream, *arguments)
    return stream.getvalue()


def written(output_format, head, made):
    text = told(rows.write, output_format, head, made)
    return list(csv.reader(io.StringIO(text), delimiter="\t" if output_format == "lines" else ","))


# proposed commands


@pytest.mark.parametrize("output_format", ["junit", "markdown", "html"])
def test_reports_propose_explain_with_the_given_site_file(tmp_path, output_format):
    (tmp_path / "my site.yml").write_text("checks:\n  swappiness-high: {severity: info}\n")
    words = ("audit", "--facts", "h200-x4", "--site", "my site.yml", "--fail-on", "never", "--format", output_format)
    done = nodetune(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    proposed = {
        "junit": "next: nodetune explain gpu-driver-vulnerable --site 'my site.yml'",
        "markdown": "`nodetune explain --facts h200-x4 --site 'my site.yml' --section by-hand`",
        "html": '"explaining":"--site \'my site.yml\'"',
    }
    assert proposed[output_format] in done.stdout.replace('": "', '":"').replace("\\u0027", "'")


def test_resume_proposes_explain_with_the_given_site_file():
    fate = Fate("gpu1", "stays", "gpu-lost fails", check="gpu-lost", code=1)
    assert told(guard.print_fate, fate, JUDGED).rstrip().endswith(f"; next: nodetune explain gpu-lost {JUDGED}")
    assert told(guard.print_fate, fate).rstrip().endswith("; next: nodetune explain gpu-lost")


def way_back(folder, entries, *arguments):
    """What a command says about its run, which it records in this folder: the run's id, and the line."""
    with record.recorded("apply", {}, ["gpu1"], None, folder) as run:
        run.add_entries("gpu1", entries)
        run.code = 0

    @click.command()
    @change_options.runs_folder
    def command(runs_folder):
        click.echo(told(_apply.print_way_back, run.id, runs_folder), nl=False)

    from click.testing import CliRunner

    return run.id, CliRunner().invoke(command, arguments, catch_exceptions=False).output.rstrip()


def test_the_way_back_names_the_folder_of_records_that_was_given(tmp_path, monkeypatch):
    folder, did = tmp_path / "my runs", [{"n": 1, "change": {"change": "file", "path": "/etc/a"}}]
    run, line = way_back(folder, did, "--runs", str(folder))
    assert line == f"run {run}; to undo it: nodetune rollback {run} --runs '{folder}'"
    monkeypatch.setenv("NODETUNE_RUNS", str(folder))
    run, line = way_back(folder, did)
    assert line == f"run {run}; to undo it: nodetune rollback {run}", "the next command has the variable too"


def test_a_run_without_a_change_proposes_no_rollback(tmp_path):
    run, line = way_back(tmp_path, [], "--runs", str(tmp_path))
    assert line == f"run {run} changed nothing"


@pytest.mark.parametrize(("changed", "offered"), [(True, True), (False, False)])
def test_a_rollback_that_undid_nothing_is_not_to_be_undone(changed, offered):
    results = (Event("ok", "gpu1", result={"done": [{"label": "/etc/a", "changed": changed}]}),)
    text = told(apply.print_rollback, {"gpu1": Outcome("gpu1", results=results)}, ["r2"])
    assert ("this rollback is run r2; it can be rolled back too" in text) == offered


@pytest.mark.parametrize(("labels", "said"), [(["a"], "1 change on gpu1"), (["a", "b"], "2 changes on gpu1")])
def test_one_change_of_the_guard_is_no_plural(labels, said):
    done = [{"label": each, "changed": True} for each in labels]
    outcome = Outcome("gpu1", results=(Event("ok", "gpu1", result={"done": done}),))
    assert told(guard.print_changes, GuardReport({"gpu1": outcome}, 0)).splitlines()[0] == said


@pytest.mark.parametrize(
    ("called", "said"), [([], ["/var/lib/nodetune", "/run/nodetune/guard", "shared folder"]), (["gpu1"], [])]
)
def test_an_uninstall_says_all_that_it_leaves_on_nodes(called, said):
    text = " ".join(told(guard.print_left, GuardReport({"gpu1": Outcome("gpu1")}, 0, called=called)).split())
    assert [each for each in ("/var/lib/nodetune", "/run/nodetune/guard", "shared folder") if each in text] == said


@pytest.mark.parametrize("written", [True, False])
def test_lines_that_slurm_conf_has_are_not_asked_for_again(written):
    node = SimpleNamespace(name="gpu1", slurm={"prolog": ""})
    text = " ".join(told(guard.print_running, [node], {"gpu1": NodeAnswer(slurm={"prolog": "/old"})}, written).split())
    assert ("now run scontrol reconfigure" in text) == written
    assert ("needs these lines" in text) != written


# formats


@pytest.mark.parametrize("output_format", rows.FORMATS)
def test_an_apply_as_rows_has_every_step_and_lost_host(output_format):
    done = [StepOutcome("gpu1", "swappiness-high", "still failing", "a\tb\nc", "none", "60", "10")]
    lost = [HostResult("gpu2", "refused", "port 22")]
    found = written(output_format, apply_rows.HEAD, apply_rows.rows(done, lost))
    if output_format == "csv":
        assert found.pop(0) == list(apply_rows.HEAD)
    assert found == [
        ["gpu1", "still failing", "swappiness-high", "60", "10", "none", "a\\x09b\\x0ac"],
        ["gpu2", "not-reached", "", "", "", "", "refused: port 22"],
    ]


@pytest.mark.parametrize("output_format", rows.FORMATS)
def test_a_verify_as_rows_has_every_figure_and_lost_host(output_format):
    figure = Figure("gpu1", "memory", "local", "node0", ((1.5, 1.5),), "GB/s")
    slow = Verdict(figure, SHORT, Expectation("baseline", 200.0, "site.json"), suspect="=a channel")
    proofs = [
        HostVerification(
            "gpu1", verdicts=(slow,), unmeasured=(Unmeasured("gpu1", "gemm", FAILED, "no driver", "bf16", "GPU0"),)
        ),
        HostVerification("gpu2", "busy", "GPU0 is in use"),
    ]
    found = written(output_format, verify_rows.HEAD, verify_rows.rows(proofs))
    if output_format == "csv":
        assert found.pop(0) == list(verify_rows.HEAD)
    assert found == [
        ["gpu1", "short", "memory", "local", "node0", "1.5", "GB/s", "200", "'=a channel"],
        ["gpu1", "failed", "gemm", "bf16", "GPU0", "", "", "", "no driver"],
        ["gpu2", "not-reached", "", "", "", "", "", "", "busy: GPU0 is in use"],
    ]


@pytest.mark.parametrize("words", [("apply", "--dry-run"), ("verify", "--compare", "a.json", "b.json")])
@pytest.mark.parametrize("output_format", rows.FORMATS)
def test_what_has_no_rows_says_so_before_anything_is_done(tmp_path, words, output_format):
    done = nodetune(*words, "--format", output_format, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{words[1]} writes text or json" in done.stderr


def test_the_settings_as_data_keep_their_schema(tmp_path):
    (tmp_path / "nodetune.toml").write_text('site = ["a.yml", "b.yml"]\nforks = 7\n')
    done = nodetune("config", "--format", "json", cwd=tmp_path, env={"NODETUNE_BECOME": "1"})
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(paths.bundled("data/schemas").joinpath("config.json").read_text()))
    found = document["settings"]
    assert found["site"] == {"value": ["a.yml", "b.yml"], "from": "nodetune.toml:1"}
    assert found["forks"] == {"value": 7, "from": "nodetune.toml:2"}
    assert found["become"] == {"value": True, "from": "NODETUNE_BECOME"}
    assert found["inventory"] == {"value": None, "from": "default"}
    assert document["files"][0] == "nodetune.toml"


# words


def test_a_path_longer_than_a_line_stays_whole():
    path = "/etc/systemd/system/nvidia-persistenced.service.d/zz-nodetune-persistence.conf"
    stream = io.StringIO()
    Lines(Console(file=stream, width=60)).line(f"persisted in {path}, and {'x' * 100}", indent="  ")
    lines = [line.strip() for line in stream.getvalue().splitlines()]
    assert lines[:2] == ["persisted in", f"{path},"]
    assert all(len(line) <= 60 for line in lines[2:])


def test_what_turning_swap_off_writes_is_said_in_words():
    shown = explain.fix(load("swap-large"))
    assert shown == "turn swap off, persisted in /etc/fstab (disruption: idle-node)"


def test_facts_that_the_probe_had_no_time_for_are_one_line():
    reasons = {f"check-{n}": f"fact.{n}: not collected: the probe's time was over" for n in range(30)}
    findings = tuple(Finding(check, "unknown", "low", reason=why) for check, why in reasons.items())
    stream = io.StringIO()
    audit.write([HostResult("gpu1", "ok", findings=findings)], stream)
    assert stream.getvalue().count("the probe's time was over") == 1
    assert "30 checks not collected" in " ".join(stream.getvalue().split())


def test_a_parameter_that_does_not_exist_is_named_in_the_finding(tmp_path):
    (tmp_path / "site.yml").write_text("add:\n  - {id: site-lacks, sysctl: net.foo.bar, accept: 1, set: 1}\n")
    done = nodetune("audit", "--site", "site.yml", "-s", "site-lacks", cwd=tmp_path)
    assert "net.foo.bar does not exist on this host: no fix writes it" in " ".join(done.stdout.split())
