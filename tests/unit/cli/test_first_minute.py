"""What a newcomer types and reads: files by their ending, what was written, proposed commands, spelling."""

import json
import re
import shlex
import time

import pytest
from click.testing import CliRunner

from nodetune.cli import proposed_options
from nodetune.cli.main import group
from nodetune.foundation import paths
from nodetune.hosts.connection_options import ConnectionOptions

MACHINE = "h200-x4"


def cli(*words, columns=80):
    done = CliRunner().invoke(group, [*map(str, words)], env={"COLUMNS": str(columns)}, prog_name="nodetune")
    if done.exception and not isinstance(done.exception, (SystemExit, ValueError)):
        raise done.exception
    return done


@pytest.mark.parametrize(
    ("ending", "begins"),
    [("html", "<!doctype html>"), ("json", "{"), ("md", "# "), ("xml", "<?xml"), ("txt", MACHINE), ("out", MACHINE)],
)
def test_the_ending_of_a_file_decides_its_format(tmp_path, ending, begins):
    path = tmp_path / f"y.{ending}"
    cli("audit", "--facts", MACHINE, "-o", path)
    assert path.read_text().startswith(begins)


def test_a_given_format_wins_over_the_ending_of_text(tmp_path):
    path = tmp_path / "y.txt"
    cli("audit", "-o", path, "--facts", MACHINE, "--format", "json")
    assert json.loads(path.read_text())["schema"] == "nodetune.audit/1"


def test_an_ending_that_a_command_cannot_write_is_refused(tmp_path):
    done = cli("plan", "--facts", MACHINE, "-o", tmp_path / "y.html")
    assert done.exit_code == 2
    assert "implies html, but this command writes text or json" in " ".join(done.output.split())
    assert not (tmp_path / "y.html").exists()


def test_what_was_written_is_said_with_the_count(tmp_path):
    path = tmp_path / "y.html"
    done = cli("audit", "--facts", MACHINE, "-o", path)
    assert re.search(r"1 host audited: 2 medium, .*findings", done.stderr)
    assert f"written to {path}" in done.stderr
    assert done.stdout == ""
    assert f"written to {path}.txt" in cli("plan", "--facts", MACHINE, "-o", f"{path}.txt").stderr


def test_a_selected_check_that_does_not_apply_says_why():
    text = cli("audit", "--facts", MACHINE, "-s", "cdi-spec-stale").output
    assert "not applicable  cdi-spec-stale: " in text
    assert len(text.split("cdi-spec-stale: ")[1].split("\n")[0]) > 5


def test_all_checks_that_do_not_apply_are_only_counted():
    assert "not applicable  " not in cli("audit", "--facts", MACHINE).output


def test_proposed_commands_name_the_site_file(tmp_path):
    site = tmp_path / "site.yml"
    site.write_text("add:\n  - {id: site-motd, file: /etc/motd, accept: x}\n")
    words = ("audit", "--facts", MACHINE, "--site", site, "-p", "inference")
    asked = f"--facts {MACHINE} -p inference --site {shlex.quote(str(site))}"
    assert f"nodetune explain {asked} --section by-hand" in cli(*words).output
    assert f"nodetune plan {asked} --max-disruption" in cli(*words, "--full").output


def test_a_plan_proposes_explain_with_the_site_file(tmp_path):
    site = tmp_path / "site.yml"
    site.write_text("add:\n  - {id: site-swappiness, sysctl: vm.swappiness, accept: 73}\n")
    text = cli("plan", "--facts", MACHINE, "--site", site, "-s", "site-swappiness", columns=300).output
    assert f"nodetune explain --facts {MACHINE} --site {site} -s site-swappiness --section by-hand" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inventory": "prod", "limit": "gpu[1-2]", "become": True}, "-i prod -l 'gpu[1-2]' -b"),
        ({"inventory": "prod", "become": True, "become_password": "x", "user": "ops"}, "-i prod -u ops -K"),
        ({"inventory": "prod", "transport": "openssh"}, "--transport openssh -i prod"),
    ],
)
def test_proposed_commands_reach_hosts_in_the_same_way(options, words):
    assert proposed_options.text(ConnectionOptions(**options)) == words


def test_a_misspelt_command_gets_a_suggestion():
    done = cli("aduit")
    assert done.exit_code == 2
    assert "unknown command 'aduit': did you mean audit?" in done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["guard", "instal"], "unknown command 'instal' of nodetune guard: did you mean install or uninstall?"),
        (["profile", "validat"], "unknown command 'validat' of nodetune profile: did you mean validate?"),
        (["pull", "x"], "unknown command 'x' of nodetune pull: list them with: nodetune pull --help"),
        (["runs", "shwo"], "did you mean show?"),
    ],
)
def test_a_misspelt_subcommand_gets_a_suggestion(words, says):
    done = cli(*words, columns=200)
    assert (done.exit_code, says in done.output) == (2, True)


@pytest.fixture
def old(tmp_path):
    """Facts that were collected 26 hours ago."""
    facts = json.loads(paths.bundled("facts/recorded").joinpath(f"{MACHINE}.json").read_text())
    facts["about"]["time"] = int(time.time()) - 26 * 3600
    path = tmp_path / f"{MACHINE}.json"
    path.write_text(json.dumps(facts))
    return path


@pytest.mark.parametrize("form", ["text", "json", "html", "markdown"])
def test_old_facts_are_reported_with_their_age(tmp_path, old, form):
    output = tmp_path / "out"
    cli("audit", "--facts", old, "--format", form, "-o", output)
    assert "facts collected 26 h ago, on 20" in output.read_text()


def test_facts_of_now_and_of_a_bundled_machine_have_no_age(old):
    facts = json.loads(old.read_text())
    facts["about"]["time"] = int(time.time())
    old.write_text(json.dumps(facts))
    assert "facts collected" not in cli("audit", "--facts", old).output
    assert "facts collected" not in cli("audit", "--facts", MACHINE).output


def test_all_fixes_are_those_of_the_selected_checks():
    words = ("audit", "--facts", MACHINE, "-s", "memory", "--ignore", "swap-*")
    assert f"low and info: nodetune audit --facts {MACHINE} -s memory --ignore 'swap-*' --full" in cli(*words).output
    text = cli(*words, "--full", columns=200).output
    assert f"to do     nodetune plan --facts {MACHINE} -s memory --ignore 'swap-*' --max-disruption" in text


@pytest.mark.parametrize("words", [[], ["guard"], ["pull"], ["profile"], ["runs"]])
def test_no_description_is_cut_at_80_columns(words):
    text = cli(*words, "--help").output
    assert not [line for line in text.splitlines() if line.rstrip().endswith("...") and not line.startswith("Usage")]
