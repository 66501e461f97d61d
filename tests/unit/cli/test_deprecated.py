"""Words of the previous release still work, and print the new word on stderr."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nodetune.api.model import DISRUPTIONS, disruption_name
from nodetune.cli import main
from nodetune.cli.commands import _rollback
from nodetune.cli.host_options import HostOptions
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.inventory import selection
from nodetune.hosts.patterns import InventoryError
from nodetune.remediation.runs import record
from nodetune.remediation.runs.record import Run

MACHINE = "h200-x4"
OLD_AND_NEW = [
    ("audit", ["--via", "slurm"], {"transport": "slurm"}, "--via is now named --transport"),
    ("audit", ["--via", "ssh"], {"transport": "auto"}, "--via is now named --transport"),
    ("facts", ["--via=slurm"], {"transport": "slurm"}, "--via is now named --transport"),
    ("plan", ["--via", "slurm"], {"transport": "slurm"}, "--via is now named --transport"),
    ("verify", ["--via", "slurm"], {"transport": "slurm"}, "--via is now named --transport"),
    ("apply", ["--transport", "ssh"], {"transport": "openssh"}, "--transport ssh is now named --transport openssh"),
    ("audit", ["--keep", "x"], {"cache": Path("x")}, "--keep is now named --cache"),
    ("audit", ["--by", "host"], {"group_by": "host"}, "--by is now named --group-by"),
    (
        "audit",
        ["--group-by", "inventory"],
        {"group_by": "finding", "cohort": "inventory"},
        "--group-by inventory is now named --cohort inventory",
    ),
    (
        "audit",
        ["--group-by=cpu.model", "--by", "host"],
        {"group_by": "host", "cohort": "cpu.model"},
        "--by is now named --group-by\nnodetune: --group-by cpu.model is now named --cohort cpu.model",
    ),
    (
        "audit",
        ["--measured", "a", "--measured", "b"],
        {"measurements": (Path("a"), Path("b"))},
        "--measured is now named --measurements",
    ),
    ("audit", ["--since", "a"], {"previous": Path("a")}, "--since is now named --previous"),
    ("audit", ["--no-fleet"], {"no_compare": True}, "--no-fleet is now named --no-compare"),
    ("verify", ["--together"], {"multi_node": True}, "--together is now named --multi-node"),
    ("verify", ["--even-if-busy"], {"allow_busy": True}, "--even-if-busy is now named --allow-busy"),
    (
        "apply",
        ["--max-disruption", "idle GPU"],
        {"max_disruption": "idle-gpu"},
        "--max-disruption 'idle GPU' is now named --max-disruption idle-gpu",
    ),
]


def parsed(command, words, **how):
    """Return the values of a command line, and what was printed on stderr."""
    found = main.group.get_command(click.Context(main.group), command)
    with redirect_stderr(io.StringIO()) as errors, redirect_stdout(io.StringIO()) as out:
        context = found.make_context(command, list(words), **how)
    assert out.getvalue() == ""
    return context.params, errors.getvalue()


@pytest.mark.parametrize(("command", "words", "values", "text"), OLD_AND_NEW)
def test_an_old_option_word_sets_the_new_option(command, words, values, text):
    usual, _ = parsed(command, [])
    found, errors = parsed(command, words)
    assert found == {**usual, **values}
    assert errors == f"nodetune: {text}\n"


@pytest.mark.parametrize("option", ["--from", "--only"])
def test_the_old_name_of_a_stage_is_the_new_stage(option):
    found, errors = parsed("provision", ["--lock", "v.lock", "--site", "site.yml", option, "look"])
    assert {found["first"], found["only"]} == {None, "preflight"}
    assert errors == f"nodetune: {option} look is now named {option} preflight\n"


@pytest.mark.parametrize("command", ["audit", "verify", "apply", "plan", "facts"])
def test_new_words_print_no_notice(command):
    words = ["--transport", "openssh", *(["--group-by", "host", "--cohort", "all"] if command == "audit" else [])]
    assert parsed(command, words)[1] == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("audit", ["--cache", "a", "--keep", "b"]),
        ("audit", ["--keep", "b", "--cache", "a"]),
        ("audit", ["--via", "slurm", "--transport", "paramiko"]),
        ("audit", ["--via", "telnet"]),
        ("audit", ["--group-by", "hots"]),
        ("apply", ["--transport", "slurm"]),
        ("apply", ["--max-disruption", "idle"]),
    ],
)
def test_words_that_contradict_or_do_not_exist_are_refused(command, words):
    with pytest.raises(click.UsageError):
        parsed(command, words)


def test_old_and_new_words_for_files_add_up():
    assert parsed("audit", ["--measurements", "a", "--measured", "b"])[0]["measurements"] == (Path("a"), Path("b"))


@pytest.mark.parametrize(("command", "words"), sorted({(row[0], row[1][0].partition("=")[0]) for row in OLD_AND_NEW}))
def test_help_and_completion_hide_old_option_words(command, words):
    found = main.group.get_command(click.Context(main.group), command)
    context = click.Context(found)
    shown = {*found.get_help(context).replace(",", " ").split()}
    offered = {item.value for item in found.shell_complete(context, "--")}
    hidden = {param.opts[0] for param in found.params if getattr(param, "hidden", False)}
    assert not hidden & (shown | offered)
    assert words in hidden or words in ("--transport", "--group-by", "--max-disruption")


def test_completion_of_a_line_with_old_words_prints_nothing():
    for command, words, _, _ in OLD_AND_NEW:
        assert parsed(command, words, resilient_parsing=True)[1] == ""


@pytest.mark.parametrize(
    ("words", "new", "begin"),
    [
        (["slurm", "status", "--help"], "slurm is now named guard", "Usage: nodetune slurm status"),
        (["taskprolog", "--policy", "/nowhere"], "taskprolog is now named guard taskprolog", "export "),
    ],
)
def test_an_old_command_works_and_keeps_stdout_clean(words, new, begin):
    done = subprocess.run([sys.executable, "-m", "nodetune", *words], capture_output=True, text=True, check=True)
    assert done.stderr == f"nodetune: {new}\n"
    assert done.stdout.startswith(begin)


def test_help_shows_every_description_uncut_at_80_columns():
    found = CliRunner().invoke(main.group, ["--help"], terminal_width=80, env={"COLUMNS": "80"}).stdout
    rows = [line for line in found.partition("Look")[2].splitlines() if line.startswith("  ")]
    assert len(rows) == len(main.group.list_commands(None))
    assert [row for row in rows if row.endswith("...") or len(row) > 80] == []
    assert not {"slurm", "taskprolog"} & {row.split()[0] for row in rows}


def test_a_run_record_of_the_old_version_gives_its_transport(tmp_path):
    run = Run.create("apply", {"transport": "ssh", "limit": None}, ["a1"], "a1", tmp_path)
    run.finish(0)
    command = main.group.get_command(click.Context(main.group), "rollback")
    with command.make_context("rollback", [run.id]) as context:
        typed = HostOptions(transport=context.params["transport"])
        connection = _rollback.options_of(record.find(run.id, tmp_path), typed).built()
    assert (connection.transport, connection.inventory) == ("openssh", "a1")


def test_local_transport_reaches_one_host_without_ssh():
    (target,) = selection.selected(ConnectionOptions(inventory="a1", transport="local"))
    assert (target.name, target.connection) == ("a1", "local")
    with pytest.raises(InventoryError, match="--transport local reaches only this host"):
        selection.selected(ConnectionOptions(inventory="a[1-2]", transport="local"))


def test_disruption_names_have_no_blanks():
    assert [disruption_name(value) for value in DISRUPTIONS] == [
        "none",
        "new-sessions",
        "daemon-reload",
        "service-restart",
        "network-flap",
        "idle-node",
        "idle-gpu",
        "reboot",
    ]


def test_json_documents_keep_the_disruption_values():
    done = CliRunner().invoke(main.group, ["plan", "--facts", MACHINE, "--format", "json"])
    values = {step["disruption"] for step in json.loads(done.stdout)["steps"]}
    assert "none" in values
    assert values <= set(DISRUPTIONS)


def test_reports_show_disruptions_without_blanks():
    shown = CliRunner().invoke(main.group, ["explain", "memlock-limited"]).stdout
    assert "(disruption: service-restart)" in shown
