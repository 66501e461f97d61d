"""How a check is found and explained, as a newcomer would look for it."""

import json

import click
import pytest
from click.testing import CliRunner

from nodetune import checks
from nodetune.cli.main import group


def cli(*words, columns=80):
    done = CliRunner().invoke(group, words, env={"COLUMNS": str(columns)}, prog_name="nodetune")
    if done.exception and not isinstance(done.exception, (SystemExit, ValueError)):
        raise done.exception
    return done


def table(*words, columns=80):
    """The checks as a terminal shows them."""
    terminal = {"COLUMNS": str(columns), "FORCE_COLOR": "1", "TERM": "xterm"}
    done = CliRunner().invoke(group, ("checks", *words), env=terminal)
    return click.unstyle(done.output)


def test_no_id_is_broken_at_80_columns():
    lines = table().splitlines()
    shown = {line.split()[0] for line in lines if line.startswith("  ") and line.strip()}
    listed = {each["id"] for each in json.loads(cli("checks", "--format", "json").output)["checks"]}
    assert listed <= shown
    assert max(map(len, lines)) <= 80


def test_each_check_has_its_title():
    text = " ".join(table("-s", "min-free-kbytes-low").split())
    assert "min-free-kbytes-low info vm.min_free_kbytes is too low" in text


def test_a_wide_terminal_shows_wanted_value_and_fix():
    text = " ".join(table("-s", "swappiness-high", columns=160).split())
    assert "at most 10 sysctl" in text


@pytest.mark.parametrize(
    ("words", "found"),
    [(["swap"], "swap-large"), (["vm.swappiness"], "swappiness-high"), (["FREE", "memory"], "min-free-kbytes-low")],
)
def test_checks_are_searched_by_words(words, found):
    text = table(*words)
    assert f"  {found} " in text
    assert "governor-not-performance" not in text


def test_words_that_no_check_names_are_an_error():
    done = cli("checks", "frobnicate")
    assert done.exit_code == 2
    assert "no check of this profile matches 'frobnicate'" in done.output


def test_a_selection_that_matches_nothing_is_an_error():
    done = cli("checks", "-s", "swap")
    assert "no check matches swap: did you mean swap-on or swap-large or swap-in-use?" in str(done.exception)


def test_several_checks_are_explained_each_once():
    text = cli("explain", "swap-large", "swap-*").output
    assert text.count("\nWanted: ") == 3
    assert text.count("swap-large  ") == 1


def test_an_area_is_explained():
    in_area = [module for module in checks.catalogue().values() if module.split(".")[-2] == "memory"]
    assert cli("explain", "memory").output.count("\nWanted: ") == len(in_area)


@pytest.mark.parametrize(
    ("given", "meant"), [("swap", "swap-on or swap-large or swap-in-use"), ("swapiness-high", "swappiness-high")]
)
def test_an_unknown_check_has_near_names(given, meant):
    done = cli("explain", given)
    assert done.exit_code == 2
    assert f"did you mean {meant}" in " ".join(done.output.split())


def test_explain_says_formula_and_what_is_written():
    text = " ".join(cli("explain", "min-free-kbytes-low").output.split())
    assert "Wanted: at least 1/2048 of RAM, 132 MiB to 1 GiB" in text
    assert "sysctl vm.min_free_kbytes = (1/2048 of RAM" in text
    assert "a number of KiB, or a text such as 256MiB" in text


def test_a_check_of_the_site_is_explained(tmp_path):
    site = tmp_path / "site.yml"
    site.write_text("add:\n  - {id: site-pages, sysctl: vm.nr_hugepages, accept: 0, set: 0, why: No DPDK here.}\n")
    text = " ".join(cli("explain", "site-pages", "--site", str(site)).output.split())
    assert "Why it matters: No DPDK here." in text
    assert "sysctl vm.nr_hugepages = 0, persisted in" in text


def test_a_list_says_how_many_are_listed_in_the_profile_and_in_all():
    done = cli("checks", "swap")
    profile = len(json.loads(cli("checks", "--format", "json").stdout)["checks"])
    listed, every = len(done.stdout.splitlines()), len(checks.load_all())
    assert listed < profile < every
    assert done.stderr == f"{listed} checks listed; {profile} are in this profile, {every} in nodetune\n"
