"""Input that was taken silently, and words about other input that misled."""

import shlex

import pytest

from tests.support.commandline import nodetune


def said(command, code=2, **more):
    done = nodetune(*shlex.split(command), **more)
    assert done.returncode == code, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("audit --facts h100-x2 -o x.pdf", "x.pdf has an unknown extension (.pdf): use one of .json, .html,"),
        ("plan --facts h100-x2 -o x.md", "x.md implies markdown, but this command writes text or json"),
        (
            "audit --facts h100-x2 -o x.html --format json",
            "x.html implies html, and --format is json: change one of them",
        ),
    ],
)
def test_a_file_for_another_format_is_refused(command, told, tmp_path):
    assert told in said(command, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", ["x.log", "x", "x.txt --format lines", "x.json --format json", "x.HTML"])
def test_a_file_that_fits_its_format_is_written(words, tmp_path):
    said(f"audit --facts h100-x2 -o {words}", code=1, cwd=tmp_path)
    (written,) = tmp_path.iterdir()
    assert written.read_text().startswith("<!doctype html>") == (words == "x.HTML")


@pytest.mark.parametrize("command", ["audit --facts h100-x2", "plan --facts h100-x2", "facts", "tune show x.json"])
def test_an_empty_name_of_a_file_is_called_empty(command):
    assert "'-o' / '--output': the name is empty: give a file or folder" in said(f"{command} -o ''")


@pytest.mark.parametrize("limit", ["good[1-", "gpu1]", "!gpu[1-", "gpu1:good[1-"])
def test_an_open_bracket_of_a_limit_is_named(limit, tmp_path):
    (tmp_path / "inv.yml").write_text("all: {hosts: {gpu1: , gpu2: }}\n")
    told = said(f"audit -i inv.yml -l '{limit}'", cwd=tmp_path)
    assert told.endswith("a bracket is not closed: write it like gpu[001-128,200]")


def problems(tmp_path, text):
    (tmp_path / "site.yml").write_text(text)
    done = nodetune("profile", "validate", "site.yml", cwd=tmp_path)
    assert done.returncode == 2
    return [line.removeprefix("error: site.yml ") for line in done.stdout.splitlines()[:-1]]


@pytest.mark.parametrize("word", ["on", "off"])
def test_on_and_off_in_quotes_are_told_to_be_without(word, tmp_path):
    assert problems(tmp_path, f'checks: {{fan-failed: "{word}"}}') == [
        f"line 1: fan-failed must be a mapping, on, off, or nothing (leave untouched): write {word} without quotes"
    ]


@pytest.mark.parametrize("at", ["checks:", "hosts: {gpu1: {checks:"])
def test_all_errors_of_one_override_are_told(at, tmp_path):
    override = "{accept: {at_most: {fact: no.fact}}, set: {fact: other.none}, severity: hihg, bogus: 1}"
    assert problems(tmp_path, f"{at} {{swappiness-high: {override}}}{'}}' * at.startswith('hosts')}") == [
        "line 1: severity must be one of info, low, medium, high, critical; found 'hihg'",
        "line 1: unknown key 'bogus'; there are: accept, set, severity, gate",
        "line 1: unknown fact 'no.fact'",
        "line 1: unknown fact 'other.none'",
    ]


def test_all_errors_of_one_added_check_are_told(tmp_path):
    added = "{id: site-x, sysctl: vm.nr_hugepages, accept: {within: [3, 1]}, severity: nope}"
    assert problems(tmp_path, f"add: [{added}]") == [
        "line 1: severity must be one of info, low, medium, high, critical; found 'nope'",
        "line 1: within must be two numbers: [low, high]",
    ]


def test_an_invalid_accept_is_not_also_called_a_contradiction(tmp_path):
    assert problems(tmp_path, "checks: {thp-unsuitable: {accept: {one_of: 3, not: 5}, set: always}}") == [
        "line 1: one_of must be a list",
        "line 1: accept must have one key; found one_of, not",
    ]
