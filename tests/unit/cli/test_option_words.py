"""The names of values on the command line, in reports and in documents."""

import json

import click
import pytest
from click.testing import CliRunner

from nodetune.api.model import DISRUPTIONS, disruption_name
from nodetune.cli import main
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.inventory import selection
from nodetune.hosts.patterns import InventoryError

MACHINE = "h200-x4"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("audit", ["--transport", "telnet"]),
        ("audit", ["--group-by", "inventory"]),
        ("apply", ["--transport", "slurm"]),
        ("apply", ["--max-disruption", "idle GPU"]),
    ],
)
def test_values_that_do_not_exist_are_refused(command, words):
    with pytest.raises(click.UsageError):
        main.group.get_command(click.Context(main.group), command).make_context(command, list(words))


def test_help_shows_every_description_uncut_at_80_columns():
    found = CliRunner().invoke(main.group, ["--help"], terminal_width=80, env={"COLUMNS": "80"}).stdout
    rows = [line for line in found.partition("Look")[2].splitlines() if line.startswith("  ")]
    assert len(rows) == len(main.group.list_commands(None))
    assert [row for row in rows if row.endswith("...") or len(row) > 80] == []


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
