"""Help, and what is said to someone who types a command in another way than it is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from nodetune import cli
from nodetune.cli.main import Commands, group
from nodetune.verify import catalogue
from tests.support.commandline import nodetune


def commands(found=group, words=()):
    """Every command that is no group, with its words."""
    context = click.Context(found)
    for name in found.list_commands(context):
        command = found.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


def sections(text):
    """Heading → lines below it."""
    found, lines = {}, []
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            lines = found.setdefault(line.rstrip(":"), [])
        elif line:
            lines.append(line)
    return found


@pytest.mark.parametrize(
    ("words", "default"),
    [
        ("audit", "this host"),
        ("guard status", "all nodes of Slurm, by their names"),
        ("guard resume", "all nodes of Slurm, by their names"),
        ("rollback", "the hosts of that run"),
    ],
)
def test_the_help_says_which_hosts_a_command_takes_by_itself(words, default):
    assert f"Default: {default}." in " ".join(nodetune(*words.split(), "--help").stdout.split())


# Groups


def test_commands_are_listed_by_what_they_do():
    found = sections(nodetune("--help").stdout)
    first = {heading.partition(":")[0]: lines[0].split()[0] for heading, lines in found.items()}
    assert first == {
        "Options": "-V,",
        "Look": "audit",
        "Change": "apply",
        "Keep": "guard",
        "Other commands": "completion",
    }


def test_every_heading_names_commands_that_exist():
    named = [name for names in Commands.headings.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) < set(group.list_commands(None))


@pytest.mark.parametrize("words", [["guard"], ["tune"], ["profile"], ["pull"]])
def test_a_group_alone_is_its_help(words):
    done = nodetune(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == nodetune(*words, "--help").stdout


@pytest.mark.parametrize("words", ["", "audit", "guard install", "runs show"])
def test_help_before_a_command_is_its_help(words):
    done = nodetune("help", *words.split())
    assert (done.returncode, done.stdout) == (0, nodetune(*words.split(), "--help").stdout)


def test_help_for_a_command_that_is_none_proposes_one():
    done = nodetune("help", "aduit")
    assert (done.returncode, done.stderr) == (2, "nodetune: unknown command 'aduit': did you mean audit?\n")


def test_a_capital_v_is_the_version():
    assert nodetune("-V").stdout == nodetune("--version").stdout


# Options


def test_common_options_of_an_audit_come_first():
    found = sections(nodetune("audit", "--help", env={"COLUMNS": "80"}).stdout)
    assert [*found][:2] == ["Options", "Connection"]
    first = [line.split()[0].rstrip(",") for line in found["Options"] if line.startswith("  -")]
    assert first == ["-i", "-l", "-b", "--facts", "-p", "--site", "-s", "--ignore", "--full", "--format", "-o", "-h"]
    assert any("--vault-id" in line for line in found["Connection"])


@pytest.mark.parametrize(
    ("words", "command"), commands(), ids=lambda each: " ".join(each) if isinstance(each, tuple) else ""
)
def test_help_lists_every_option_once(words, command):
    text = nodetune(*words, "--help").stdout
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            name = max(option.opts, key=len)
            heads = [
                line
                for line in text.splitlines()
                if line.startswith("  -") and name in line[:40].replace(",", " ").split()
            ]
            assert len(heads) == 1, name


def test_every_heading_of_options_names_some_that_exist():
    known = {option.name for _, command in commands() for option in command.params}
    assert set(cli._HEADING) <= known


def test_help_imports_no_command_and_no_library():
    code = "import sys; from nodetune.cli.main import main\ntry: main()\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, "help"], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "nodetune.cli.main" in loaded
    assert not {"nodetune.cli.commands.audit", "nodetune.cli.options", "rich", "yaml"} & loaded


def test_measurements_are_listed_with_what_runs_them():
    done = nodetune("verify", "--list", env={"COLUMNS": "200"})
    rows = [line.split("  ", 1)[0] for line in done.stdout.splitlines()]
    assert (done.returncode, rows) == (0, [*catalogue.measurements()])
    assert "  quick, full  " in next(line for line in done.stdout.splitlines() if line.startswith("gemm "))
    assert "  --only disk_gds --disk  " in done.stdout


def test_checks_are_one_line_each_for_other_programs():
    done = nodetune("checks", "-s", "memory", env={"COLUMNS": "40"})
    rows = [line.split(maxsplit=3) for line in done.stdout.splitlines()]
    assert ["swap-large", "medium", "memory", "Swap space is too large"] in rows
    assert {row[2] for row in rows} == {"memory"}


# The manual page

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "nodetune.1"


def test_the_manual_page_has_the_help_of_every_command():
    heads = [line.removeprefix(".SH ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith(".SH ")]
    assert {f"NODETUNE {' '.join(words)}".upper() for words, _ in commands()} <= set(heads)


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_the_manual_page_shows_each_line_of_the_help():
    words = ["groff", "-Kutf8", "-ww", "-man", "-Tutf8", "-P-cbou", "-rLL=100n", str(PAGE)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    shown = {line.strip() for line in done.stdout.replace("\N{MINUS SIGN}", "-").splitlines()}
    told = nodetune("audit", "--help", env={"COLUMNS": "80"}).stdout.splitlines()
    assert [line for line in told if line.strip() not in shown] == []


def test_a_reference_page_names_the_short_form_of_help():
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert text.count("  -h, --help ") == text.count("\n## ")


# What was meant


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fix", "unknown command 'fix': did you mean apply?"),
        ("undo last", "unknown command 'undo': did you mean rollback?"),
        ("audit fleet.yml", "unexpected argument 'fleet.yml': did you mean -i fleet.yml?"),
        ("audit gpu001", "unexpected argument 'gpu001': did you mean -i gpu001?"),
        ("verify gpu001 gpu002", "unexpected argument 'gpu001': did you mean -i gpu001,gpu002?"),
        ("plan -i localhost gpu001", "unexpected argument 'gpu001': did you mean -l gpu001?"),
        ("apply gpu[1-2]", "unexpected argument 'gpu[1-2]': did you mean -i 'gpu[1-2]'?"),
        ("audit node.json", "unexpected argument 'node.json': did you mean --facts node.json?"),
        ("guard diff gpu001", "unexpected argument 'gpu001': did you mean -i gpu001?"),
        ("facts node.json", "unexpected argument 'node.json'"),
    ],
)
def test_a_word_in_the_wrong_place_gets_its_option(words, said):
    done = nodetune(*words.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"nodetune: {said}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("audit --forkz 3", "no such option --forkz: did you mean --forks"),
        ("audit -Z", "no such option -Z: see nodetune audit --help"),
        ("audit --forks x", "invalid value for '--forks': 'x' is not a whole number"),
        ("audit --timeout x", "invalid value for '--timeout': 'x' is not a number"),
        ("audit --forks", "option '--forks' requires an argument"),
        ("explain", "give the ID of a check, or --section"),
        ("diff", "missing argument 'A': see nodetune diff --help"),
        ("provision", "missing option '--site': see nodetune provision --help"),
        ("audit -q -v", "-q and -v contradict each other"),
        ("guard instal", "unknown command 'instal' of nodetune guard: did you mean install or uninstall?"),
    ],
)
def test_every_error_has_the_same_form(words, said):
    done = nodetune(*words.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"nodetune: {said}")


# Commands as they can be typed

SCRIPT = "#!{python}\nfrom nodetune.cli.main import main\nmain()\n"


@pytest.fixture
def installed(tmp_path):
    """A folder with the program in bin/, as in an environment that is not activated."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nodetune"
    program.write_text(SCRIPT.format(python=sys.executable))
    program.chmod(0o755)
    return tmp_path


def run(words, folder, path):
    variables = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    variables["NODETUNE_RUNS"] = str(folder / "runs")
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        ("audit --facts h200-x4 -s gpu", " bin/nodetune explain --facts h200-x4 -s gpu --section by-hand"),
        ("explain no-such-check-at-all", "search them with: bin/nodetune checks WORD"),
        ("audit -Z", "see bin/nodetune audit --help"),
    ],
)
def test_a_proposed_command_has_the_path_that_was_typed(installed, words, proposed):
    assert proposed in run(["bin/nodetune", *words.split()], installed, "/usr/bin:/bin")


def test_a_proposed_command_that_changes_folder_has_the_whole_path(installed):
    (installed / "other").mkdir()
    (installed / "gpu1.json").write_bytes(Path(group_facts()).read_bytes())
    run(["bin/nodetune", "audit", "--facts", "gpu1.json"], installed, "/usr/bin:/bin")
    variables = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    variables["NODETUNE_RUNS"] = str(installed / "runs")
    done = subprocess.run(
        ["../bin/nodetune"], cwd=installed / "other", env=variables, capture_output=True, text=True, check=True
    )
    assert f"cd {installed} && {installed}/bin/nodetune plan --facts gpu1.json" in done.stdout


def group_facts():
    from nodetune.foundation import paths

    return paths.bundled("facts/recorded") / "h200-x4.json"


def test_a_program_that_the_shell_finds_is_called_by_its_name(installed):
    text = run(["bin/nodetune", "audit", "-Z"], installed, f"{installed}/bin:/usr/bin:/bin")
    assert text == "nodetune: no such option -Z: see nodetune audit --help\n"


def test_another_nodetune_in_the_path_is_not_proposed(installed):
    other = installed / "other"
    other.mkdir()
    (other / "nodetune").write_text("#!/bin/sh\n")
    (other / "nodetune").chmod(0o755)
    assert "see bin/nodetune audit --help" in run(["bin/nodetune", "audit", "-Z"], installed, f"{other}:/usr/bin:/bin")
