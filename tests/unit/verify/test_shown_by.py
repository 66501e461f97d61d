"""The figure that `explain` names for a check, and the commands that measure it: the command line takes each of them."""

import shlex
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from nodetune import checks
from nodetune.cli.main import group
from nodetune.verify import catalogue, shown_by


def explained(check):
    done = CliRunner().invoke(
        group, ["explain", check, "--facts", "h100-x2"], terminal_width=500, env={"COLUMNS": "500"}
    )
    assert done.exit_code == 0, done.output
    return dict(line.split(": ", 1) for line in done.output.splitlines() if ": " in line)


@pytest.mark.parametrize(
    ("check", "figure", "command"),
    [
        (
            "thp-unsuitable",
            "memory local 25.9 GB/s with the setting wrong, 34.7 GB/s right: 1.25 to 1.46 times (99 %); huge pages never or madvise",
            "nodetune apply --select thp-unsuitable --verify --suite full",
        ),
        (
            "read-ahead-small",
            "disk_buffered read 0.0038 GB/s",
            "nodetune apply --select read-ahead-small --verify --disk DIR",
        ),
        (
            "tcp-wmem-below-bandwidth",
            "tcp one_stream 0.231 Gb/s",
            "nodetune apply -i INVENTORY --select tcp-wmem-below-bandwidth --verify --pairs --canary 2",
        ),
        (
            "tcp-rmem-below-bandwidth",
            "tcp one_stream 0.648 Gb/s",
            (
                "nodetune apply -i INVENTORY --select tcp-rmem-below-bandwidth --verify --pairs --canary 2; "
                "nodetune verify -i INVENTORY --only rails --repeat 5"
            ),
        ),
        (
            "nccl-transport-disabled",
            "nccl all_reduce 27.8 GB/s",
            "nodetune verify --only nccl --only training_step --repeat 5",
        ),
        (
            "deep-idle-allowed",
            "wakeup median 63.8 µs with the setting wrong, 61.9 µs right: no difference seen: such a machine has no deep states",
            "nodetune apply --select deep-idle-allowed --verify --suite full",
        ),
        ("swap-large", "none. It shows only when memory runs short", None),
        (
            "memory-modules-unequal-speed",
            "memory: not measured with this setting wrong and right. It takes a faulty module.",
            "nodetune verify --only memory --repeat 5",
        ),
    ],
)
def test_explain_names_the_figure_how_far_it_moved_and_the_command(check, figure, command):
    said = explained(check)
    assert said["Figure"].startswith(figure)
    assert said.get("Measure it") == command


def test_a_check_of_a_site_has_no_figure():
    assert shown_by.told(replace(checks.load("swap-large"), area="site")) == []


@pytest.mark.parametrize("check", checks.load_all(), ids=lambda check: check.id)
def test_every_command_is_one_that_the_command_line_takes(check):
    said = dict(shown_by.told(check))
    assert said["Figure"]
    for words in map(shlex.split, filter(None, said.get("Measure it", "").split("; "))):
        command = group.get_command(click.Context(group), words[1])
        command.make_context("nodetune", words[2:])


def test_every_figure_is_one_of_a_measurement():
    figures = {each["figure"].split()[0] for row in shown_by.rows() for each in row.get("moved", ())}
    assert figures <= set(catalogue.measurements())
