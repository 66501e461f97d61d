"""Settings: which file, variable or word counts, who says so, and which file is never read."""

import json
import os
import subprocess
import sys

import pytest

from nodetune.cli import settings
from nodetune.cli.known_settings import KNOWN
from tests.support.commandline import nodetune

MACHINE = "h200-x4"
SAVED = ("audit", "--facts", MACHINE, "--fail-on", "never")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project's folder, which is the current one, and a home."""
    folder = tmp_path / "project"
    (folder / "inventories").mkdir(parents=True)
    (folder / "inventories" / "prod.yml").write_text(
        "all: {hosts: {gpu1: {ansible_host: 127.0.0.1, ansible_port: 1}}}\n"
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    for each in KNOWN.values():
        monkeypatch.delenv(each.envvar, raising=False)
    return folder


@pytest.fixture
def user_file(here):
    folder = here.parent / "home" / ".config" / "nodetune"
    folder.mkdir(parents=True)
    return folder / "nodetune.toml"


def holding(**more):
    """What `nodetune config` shows: setting → (value, where it comes from)."""
    done = nodetune("config", **more)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.partition("\n\n")[0].splitlines()]
    return {key: (value, " ".join(where)) for key, value, *where in rows}


def refused(*words, **more):
    done = nodetune(*(words or ("config",)), **more)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nodetune: ")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr.strip()


def test_without_a_file_every_setting_is_the_default(here):
    assert {where for _, where in holding().values()} == {"default"}
    assert nodetune("config").stdout.endswith("files: ~/.config/nodetune/nodetune.toml (missing)\n")


def test_the_project_file_wins_over_the_users_own(here, user_file):
    user_file.write_text("forks = 9\n\ntimeout = 12.5\n")
    (here / "nodetune.toml").write_text("# ours\nforks = 3\n")
    found = holding()
    assert found["forks"] == ("3", "nodetune.toml:2")
    assert found["timeout"] == ("12.5", "~/.config/nodetune/nodetune.toml:3")


def test_a_variable_wins_over_files(here):
    (here / "nodetune.toml").write_text("forks = 3\nbecome = true\n")
    found = holding(env={"NODETUNE_FORKS": "4", "NODETUNE_BECOME": "0"})
    assert found["forks"] == ("4", "NODETUNE_FORKS")
    assert found["become"] == ("false", "NODETUNE_BECOME")


def test_an_empty_variable_counts_as_none(here):
    (here / "nodetune.toml").write_text("forks = 3\n")
    assert holding(env={"NODETUNE_FORKS": ""})["forks"] == ("3", "nodetune.toml:1")


def test_the_command_line_wins_over_all(here):
    (here / "nodetune.toml").write_text('inventory = "prod"\nbecome = true\nask-become-pass = true\n')
    done = nodetune("audit", "-i", "other@127.0.0.1:1", "--no-become", "--timeout", 60, env={"NODETUNE_INVENTORY": "x"})
    assert done.returncode == 3, "no password was asked for"
    assert "127.0.0.1 port 1 refused the connection" in done.stdout
    assert "gpu1" not in done.stdout


def test_a_file_gives_the_inventory(here):
    (here / "nodetune.toml").write_text('inventory = "prod"\n')
    done = nodetune("audit", "--timeout", 60)
    assert done.returncode == 3
    assert "gpu1" in done.stdout


def test_the_pyproject_table_counts_without_an_own_file(here):
    (here / "pyproject.toml").write_text('[project]\nname = "x"\nforks = 1\n\n[tool.nodetune]\nforks = 7\n')
    assert holding()["forks"] == ("7", "pyproject.toml:6")
    (here / "nodetune.toml").write_text("forks = 8\n")
    assert holding()["forks"] == ("8", "nodetune.toml:1")


def test_a_project_that_says_nothing_of_nodetune_is_left_alone(here):
    (here / "pyproject.toml").write_text('[project]\ndependencies = ["nodetune"]\n[tool.other]\nx = [}\n')
    assert holding()["forks"][1] == "default"


def test_relative_paths_of_a_file_start_at_its_folder(here, user_file):
    user_file.write_text('site = "site.yml"\nruns = "~/runs"\ninventory = "fleet"\n')
    assert holding()["site"][0] == str(user_file.parent / "site.yml")
    assert holding()["runs"][0] == str(here.parent / "home" / "runs")
    assert holding()["inventory"][0] == "fleet"
    (user_file.parent / "inventories").mkdir()
    (user_file.parent / "inventories" / "fleet.yml").write_text("all: {}\n")
    assert holding()["inventory"][0] == str(user_file.parent / "inventories" / "fleet.yml")
    user_file.write_text('inventory = "gpu[1-8/2]"\n')
    assert holding()["inventory"][0] == "gpu[1-8/2]"


def test_a_site_file_of_the_settings_is_used(here):
    (here / "site.yml").write_text("add:\n  - {id: site-motd, file: /etc/motd, accept: x}\n")
    assert nodetune("explain", "site-motd").returncode == 2
    (here / "nodetune.toml").write_text('site = "site.yml"\n')
    assert "site-motd" in nodetune("explain", "site-motd").stdout


def test_a_required_site_file_may_come_from_settings(here):
    (here / "nodetune.toml").write_text('site = "nosuch.yml"\n')
    assert "nosuch.yml: no such file" in refused("lock", "-i", "x")


def test_another_file_is_read_where_the_variable_names_it(here, tmp_path):
    (here / "nodetune.toml").write_text("forks = 3\n")
    (tmp_path / "ci.toml").write_text("forks = 5\n")
    named = {settings.VARIABLE: str(tmp_path / "ci.toml")}
    assert holding(env=named)["forks"] == ("5", f"{tmp_path}/ci.toml:1")
    assert holding(env={settings.VARIABLE: ""})["forks"][1] == "default"
    assert "no such file" in refused(env={settings.VARIABLE: "nosuch.toml"})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("forks = 3\nforkz = 4\n", "nodetune.toml:2: unknown setting 'forkz': did you mean 'forks'?"),
        ("ask_become_pass = true\n", "did you mean 'ask-become-pass'?"),
        ("yes = true\n", "nodetune.toml:1: unknown setting 'yes': nodetune config lists them"),
        ("\n[tool]\nx = 1\n", "nodetune.toml:2: unknown setting 'tool'"),
        ('forks = "4"\n', "nodetune.toml:1: forks: write a whole number"),
        (f"forks = {'9' * 5000}\n", "nodetune.toml: not TOML: Exceeds the limit"),
        ('site = "a\\u0000b"\n', "nodetune.toml:1: site: write a text"),
        ('user = "a\\u0000b"\n', "nodetune.toml:1: user: write a text"),
        ("forks = true\n", "nodetune.toml:1: forks: write a whole number"),
        ("become = 1\n", "nodetune.toml:1: become: write true or false"),
        ("inventory = [1]\n", 'nodetune.toml:1: inventory: write a text in quotes: "…"'),
        ('inventory = ""\n', "nodetune.toml:1: inventory: write a text in quotes"),
        ("profile = 1\n", "nodetune.toml:1: profile: write a text or a list of texts"),
        ("forks = 0\n", "nodetune.toml:1: forks: 0 is not in the range 1<=x<=4096"),
        ('transport = "ftp"\n', "nodetune.toml:1: transport: 'ftp' is not one of"),
        ("forks = \n", "nodetune.toml: not TOML: "),
        ('"\\u001b[2J" = 1\n', "unknown setting '\\\\x1b[2J'"),
    ],
)
def test_a_wrong_file_is_one_line_that_says_where(here, content, told):
    (here / "nodetune.toml").write_text(content)
    assert told in refused()
    assert told in refused(*SAVED)


def test_a_file_that_is_no_text_is_one_line(here):
    (here / "nodetune.toml").write_bytes(b"\xff\xfe")
    assert refused() == "nodetune: nodetune.toml: not UTF-8 text"


def test_a_pipe_is_not_waited_for(here):
    os.mkfifo(here / "nodetune.toml")
    assert refused() == "nodetune: nodetune.toml: not a file"


def test_a_wrong_variable_is_one_line_that_names_it(here):
    assert refused("audit", env={"NODETUNE_FORKS": "many"}).startswith(
        "nodetune: NODETUNE_FORKS: forks: 'many' is not a whole number: give --forks for this command"
    )


def test_a_wrong_variable_is_ignored_where_the_option_is_given(here):
    assert nodetune(*SAVED, "--forks", 2, env={"NODETUNE_FORKS": "many"}).returncode in (0, 3)


def test_a_variable_that_is_nearly_one_is_named(here):
    done = nodetune("config", env={"NODETUNE_INVENTROY": "x"})
    assert "NODETUNE_INVENTROY is not a setting: did you mean NODETUNE_INVENTORY?" in done.stderr
    assert nodetune("config", env={"NODETUNE_SOMETHING_ELSE": "x"}).stderr == ""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_that_others_can_write_is_never_read(here, what):
    (here / "nodetune.toml").write_text("forks = 3\n")
    (here if what == "folder" else here / "nodetune.toml").chmod(0o777)
    told = refused()
    assert "nodetune.toml is not read: every user can write " in told
    assert "NODETUNE_CONFIG=" in told
    assert "is not read" in refused(*SAVED)


def test_a_file_of_another_user_is_never_read_by_root(here):
    if os.geteuid():
        pytest.skip("giving a file to another user takes root")
    (here / "nodetune.toml").write_text("forks = 3\n")
    os.chown(here / "nodetune.toml", 12345, 0)
    assert "belongs to user 12345" in refused()


def test_the_users_own_file_is_held_to_the_same_rule(here, user_file):
    user_file.write_text("forks = 3\n")
    user_file.chmod(0o666)
    assert "every user can write" in refused()


def test_saved_facts_take_no_inventory_from_settings(here):
    (here / "nodetune.toml").write_text(
        'inventory = "prod"\nbecome = true\ntransport = "slurm"\nask-become-pass = true\n'
    )
    done = nodetune(*SAVED)
    assert done.stdout.startswith(MACHINE)
    assert "-i prod" not in done.stdout


def test_the_guard_and_light_commands_read_no_settings(here):
    (here / "nodetune.toml").write_text("[[[\n")
    assert nodetune("guard", "taskprolog").returncode == 0
    assert nodetune("--help").returncode == 0
    assert nodetune("audit", "--help").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "--timeout", 60),
        ("apply", "--dry-run", "--timeout", 60),
        ("guard", "install", "--timeout", 60),
        ("guard", "uninstall", "--timeout", 60),
    ],
)
def test_commands_that_change_hosts_name_the_set_inventory(here, words):
    (here / "nodetune.toml").write_text('# hosts\ninventory = "prod"\n')
    assert "inventory: prod (nodetune.toml:2)\n" in nodetune(*words).stderr
    assert "inventory: " not in nodetune(*words, "-i", "127.0.0.1:1").stderr
    assert (
        "inventory: 127.0.0.1:1 (NODETUNE_INVENTORY)\n"
        in nodetune(*words, env={"NODETUNE_INVENTORY": "127.0.0.1:1"}).stderr
    )


def test_site_files_of_settings_are_named_as_they_are_written(here):
    for name in ("site.yml", "more.yml"):
        (here / name).write_text("checks: {}\n")
    (here / "nodetune.toml").write_text('inventory = "prod"\nsite = ["site.yml", "more.yml"]\n')
    assert "site: site.yml, more.yml (nodetune.toml:2)\n" in nodetune("apply", "--timeout", 60).stderr


def test_a_rollback_uses_hosts_and_login_of_its_run(here):
    run = here / "runs" / "20260101-000000-abcd"
    run.mkdir(parents=True)
    about = {
        "inventory": "127.0.0.1:1",
        "options": {"user": "then", "become": False, "limit": None, "transport": "auto"},
    }
    document = {"schema": "nodetune.run/1", "id": run.name, "command": "apply", "ended": "x", "exit": 0, **about}
    (run / "run.json").write_text(
        json.dumps({**document, "hosts": {"127.0.0.1": "h"}, "started": "2026-01-01T00:00:00"})
    )
    (here / "nodetune.toml").write_text('inventory = "prod"\nuser = "now"\nbecome = true\nruns = "runs"\n')
    done = nodetune("rollback", run.name, "--dry-run", "--timeout", 60)
    assert f"inventory: 127.0.0.1:1 (run {run.name})" in done.stderr
    assert "prod" not in done.stdout + done.stderr


def test_a_typed_folder_of_runs_counts_for_show_too(here):
    (here / "nodetune.toml").write_text('runs = "settings"\n')
    run = here / "typed" / "20260101-000000-abcd"
    run.mkdir(parents=True)
    document = {"schema": "nodetune.run/1", "id": run.name, "command": "apply", "ended": "x", "exit": 0, "options": {}}
    document |= {"hosts": {}, "started": "2026-01-01T00:00:00+00:00", "inventory": None}
    (run / "run.json").write_text(json.dumps(document))
    assert nodetune("runs", "--runs", "typed", "show", run.name, "--format", "json").returncode == 0
    assert f"no runs are recorded in {here}/settings" in refused("runs", "show", run.name)


def test_hosts_of_an_inventory_in_the_settings_are_completed(here):
    (here / "nodetune.toml").write_text('inventory = "prod"\n')
    environment = {
        **os.environ,
        "_NODETUNE_COMPLETE": "bash_complete",
        "COMP_WORDS": "nodetune audit -l gp",
        "COMP_CWORD": "3",
    }
    command = [
        sys.executable,
        "-c",
        "from nodetune.cli import completion, main; completion.MAX_SECONDS = 90; main.main()",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "plain,gpu1\n"
    (here / "nodetune.toml").write_text("broken\n")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_file_in_use_imports_no_way_to_hosts(here):
    (here / "nodetune.toml").write_text('inventory = "prod"\n')
    code = (
        "import sys; from nodetune.cli import main\n"
        "try: main.main()\nfinally: print([each for each in ('nodetune.hosts.inventory', 'paramiko') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, "config"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_setting_has_a_variable_that_its_name_says():
    found = {each.envvar for each in KNOWN.values()}
    assert {"NODETUNE_INVENTORY", "NODETUNE_SITE", "NODETUNE_ASK_BECOME_PASS", "NODETUNE_RUNS"} <= found


@pytest.mark.parametrize("words", [SAVED, ("config",), ("profile", "show", "training"), ("plan", "--facts", MACHINE)])
def test_a_command_takes_settings_of_other_commands_in_its_file(here, words):
    (here / "nodetune.toml").write_text('batch = "10%"\nruns = "r"\ndrain = "slurm"\nprofile = "training"\nforks = 3\n')
    command = [sys.executable, "-m", "nodetune", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode in (0, 3)) == ("", True), "a process of its own: other tests import more"


@pytest.mark.parametrize("first", ["options", "commands.provision", "commands.guard", "commands.config"])
def test_what_is_imported_first_does_not_change_the_settings(here, first):
    code = f"import nodetune.cli.{first}; from nodetune.cli import main; main.main()"
    done = subprocess.run([sys.executable, "-c", code, "config"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", nodetune("config").stdout)


@pytest.mark.parametrize("words", [("--timeout", "nan"), ()])
def test_a_time_that_is_no_number_is_refused(here, words):
    done = nodetune("audit", "--facts", MACHINE, *words, env={} if words else {"NODETUNE_TIMEOUT": "nan"})
    assert done.returncode == 2
    assert "nan is not in the range 1<=x<=3600" in done.stderr
