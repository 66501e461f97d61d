"""What a command imports: nothing that it does not need for the way that it takes."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from nodetune.foundation import paths

CODE = """
import sys
from nodetune.cli.main import main
try:
    main()
finally:
    print(*sys.modules, sep="\\n")
"""
TO_HOSTS = ("nodetune.remote", "nodetune.hosts.inventory", "paramiko", "ansible", "ansible_runner")
FORMATS = ("html", "junit", "markdown", "prometheus", "lines")
MAX_MODULES = 58
"""Modules of nodetune that judging one saved file may import, without the checks."""


def imported(folder, *arguments):
    """The modules that a command has imported at its end."""
    command = [sys.executable, "-c", CODE, *arguments, "-o", str(folder / "report")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NODETUNE_")}  # settings
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode in (0, 1, 3), done.stderr
    assert (folder / "report").stat().st_size > 100, done.stderr
    return set(done.stdout.split())


def below(packages, modules):
    return sorted(each for each in modules if any(f"{each}.".startswith(f"{package}.") for package in packages))


@pytest.mark.parametrize("package", TO_HOSTS)
def test_the_ways_to_hosts_are_packages_that_exist(package):
    assert find_spec(package)


@pytest.mark.parametrize("command", ["audit", "plan"])
def test_saved_facts_are_judged_without_a_way_to_hosts(tmp_path, command):
    assert below(TO_HOSTS, imported(tmp_path, command, "--facts", "h200-x4")) == []


def test_a_folder_of_facts_is_judged_without_a_way_to_hosts(tmp_path):
    folder = tmp_path / "facts"
    folder.mkdir()
    for host in ("gpu1", "gpu2"):
        shutil.copy(paths.bundled("facts/recorded") / "h200-x4.json", folder / f"{host}.json")
    modules = imported(tmp_path, "audit", "--facts", str(folder))
    assert "nodetune.audit.fleet.evaluate" in modules, "its hosts were compared"
    assert below(TO_HOSTS, modules) == []


@pytest.mark.parametrize("words", [["--help"], ["xyzzy"]])
def test_help_and_a_mistyped_command_import_no_command(words):
    done = subprocess.run([sys.executable, "-c", CODE, *words], check=False, capture_output=True, text=True)
    assert "nodetune.cli.main" in done.stdout
    assert below(["nodetune.cli.commands.audit", "nodetune.cli.commands.profile", "rich"], done.stdout.split()) == []


def test_a_login_imports_neither_slurm_nor_the_probe(tmp_path):
    modules = imported(tmp_path, "audit", "-i", "nobody@127.0.0.1:1", "--timeout", "20")
    assert below(TO_HOSTS, modules), "it tried to log in"
    assert "paramiko.config" in modules
    assert below(["nodetune.remote.slurm", "nodetune.probe.main", "asyncio", "unittest", "invoke.run"], modules) == []


def test_paramiko_still_runs_the_commands_of_match_exec():
    code = """
import nodetune.remote.paramiko, paramiko
told = paramiko.SSHConfig.from_text("Match exec true\\n  User me\\nMatch exec false\\n  Port 7\\n").lookup("gpu1")
print(told["user"], "port" in told)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["me", "False"]


def test_judging_one_saved_file_imports_few_modules(tmp_path):
    modules = below(["nodetune"], imported(tmp_path, "audit", "--facts", "h200-x4"))
    judging = [each for each in modules if not each.startswith("nodetune.checks.")]
    assert "nodetune.audit.evaluate" in judging
    assert len(judging) <= MAX_MODULES + 1, "nodetune itself, and its modules"


@pytest.mark.parametrize("wanted", FORMATS)
def test_only_the_wanted_report_format_is_imported(tmp_path, wanted):
    every = [f"nodetune.report.{name}" for name in (*FORMATS, "text.audit")]
    modules = imported(tmp_path, "audit", "--facts", "h200-x4", "--format", wanted)
    assert {".".join(each.split(".")[:3]) for each in below(every, modules)} == {f"nodetune.report.{wanted}"}
