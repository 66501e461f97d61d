"""Answers that were wrong, said too little, or could not be pasted: each as a stranger met it."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from nodetune.audit import run
from nodetune.cli.commands import apply
from nodetune.cli.main import group
from nodetune.cli.terminal import Terminal
from nodetune.foundation import paths
from nodetune.hosts.target import Target
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.report.text import apply as text_apply
from nodetune.report.text.host_names import causes
from nodetune.report.text.lines import Lines, console
from tests.support import documents
from tests.support.commandline import nodetune

BUNDLED = ("--facts", "h200-x4")


def said(*words, code=2, **more):
    done = nodetune(*words, **more)
    assert done.returncode == code, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def commands(found=group, words=()):
    """Return every command with its words, as `nodetune WORDS --help` shows it."""
    context = click.Context(found)
    for name in found.list_commands(context):
        command = found.get_command(context, name)
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


# What was typed wrong


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("resume", "did you mean guard resume?"),
        ("validate", "did you mean profile validate?"),
        ("audit -s ''", "no check matches '': "),
        ("audit --cohort kernel", "did you mean host.kernel"),
        ("profile show trainin", "unknown profile 'trainin': did you mean 'training'?"),
        ("audit -i nope.ini", "no such file or folder: nope.ini"),
        ("audit -i 'gpu[003-001]'", "'gpu[003-001]' is not a valid node set (bad range): write"),
        ("audit -s gpu,memory", "-s gpu,memory: one value each: -s gpu -s memory"),
        ("plan --ignore 'gpu memory'", "--ignore gpu --ignore memory"),
        ("audit -s critical,high", "--fail-on high is about severities"),
        ("audit -s by-hand", "nodetune explain --section by-hand is about a section"),
        ("audit --host gpu1", "no such option --host: did you mean -l (some hosts of the inventory) or -i ("),
        ("plan --nodes gpu1", "no such option --nodes: did you mean -l ("),
        ("apply --facts a.json", "apply changes hosts and takes no saved facts: nodetune plan --facts shows"),
        ("verify --facts a.json", "no such option --facts: audit, plan and explain take saved facts"),
    ],
)
def test_what_was_typed_wrong_gets_a_clear_answer(words, hint):
    import shlex

    text = said(*shlex.split(words))
    assert hint in text
    assert "?;" not in text
    assert "inventories/ are" not in text


def test_a_variable_that_is_no_number_is_told_so_in_words(monkeypatch):
    monkeypatch.setenv("NODETUNE_FORKS", "x")
    assert "NODETUNE_FORKS: forks: 'x' is not a whole number: give --forks" in said("audit")


def test_an_inventory_that_is_a_text_names_no_type_of_python(tmp_path):
    (tmp_path / "hosts.yml").write_text("just words\n")
    text = said("audit", "-i", str(tmp_path / "hosts.yml"))
    assert text.endswith("should be a dictionary")


def test_one_mistake_in_a_waiver_is_one_error(tmp_path):
    site = tmp_path / "site.yml"
    site.write_text("waivers:\n  - {id: swap-large, hosts: gpu1, until: 2030-01-01}\n")
    assert said("profile", "validate", str(site)).count("lacks reason, owner") == 1


@pytest.mark.parametrize("command", ["audit", "plan"])
def test_a_fix_that_its_own_check_refuses_is_named_before_it_is_planned(tmp_path, command):
    site = tmp_path / "site.yml"
    site.write_text("checks:\n  slow-start-after-idle-on: {accept: 0, set: 1}\n")
    text = said(command, *BUNDLED, "-s", "slow-start-after-idle-on", "--site", str(site), code=0)
    assert f"{site} line 2: slow-start-after-idle-on: a fix would set 1, which accept rejects" in text


@pytest.mark.parametrize(("steps", "said"), [(1, "Apply 1 step on gpu1?"), (2, "Apply 2 steps on gpu1?")])
def test_one_step_is_no_plural(steps, said):
    prepared = SimpleNamespace(
        busy=[SimpleNamespace(host="gpu1", findings=[None] * steps)], request=SimpleNamespace(reboot=False)
    )
    assert apply._question(prepared) == said


# Files


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not JSON: an empty file: collect the facts again"),
        (b'{"facts": {"a": {"val', "not JSON: cut off in line 1: collect the facts again"),
        (b'{"facts":\n', "not JSON: cut off in line 2: collect the facts again"),
        (b"\x7fELF\xff\xfe", "not JSON: not UTF-8 text: give --facts a file from nodetune facts"),
        (b"hello", "not JSON: line 1, column 1: Expecting value: give --facts a file from nodetune facts"),
        (
            b'{"gpus": 8}',
            "not a fact document: no object with a member `facts`: give --facts a file from nodetune facts",
        ),
    ],
)
def test_a_file_that_holds_no_facts_is_described_in_words(tmp_path, content, why):
    file = tmp_path / "gpu1.json"
    file.write_bytes(content)
    text = said("audit", "--facts", str(file))
    assert text.endswith(f"gpu1.json: {why}")


@pytest.mark.parametrize(("every", "hint"), [(None, "(nodetune facts)"), (600, "nodetune-pull.timer")])
def test_stale_facts_are_collected_again_by_what_collected_them(tmp_path, every, hint):
    about = {"time": 1_700_000_000} | ({"every": every} if every else {})
    facts = {"schema": "nodetune.facts/1", "host": "gpu1", "about": about, "facts": {}}
    (tmp_path / "gpu1.json").write_text(json.dumps(facts))
    assert hint in said("audit", "--facts", str(tmp_path), "--max-age", "1h", code=3)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_named():
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "nodetune", "checks", "swap"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "nodetune: standard output: No space left on device\n")
    assert said("audit", *BUNDLED, "-o", "/dev/full").endswith("/dev/full: No space left on device")


# -o: what came out is said on standard error


@pytest.mark.parametrize("ending", ["txt", "json"])
def test_a_plan_that_goes_to_a_file_says_what_it_came_to(tmp_path, ending):
    done = nodetune("plan", *BUNDLED, "-s", "slow-start-after-idle-on", "-o", str(tmp_path / f"plan.{ending}"))
    told, where = done.stderr.splitlines()
    assert (done.returncode, told) == (0, "1 step on 1 host; 0 findings need manual work. Nothing was changed.")
    assert where.startswith("written to ")


def test_a_diff_that_goes_to_a_file_says_what_it_came_to(tmp_path):
    for name, value in (("a", 1), ("b", 2)):
        facts = {"sysctl.vm.swappiness": {"value": value}}
        document = {
            "schema": "nodetune.facts/1",
            "host": "gpu1",
            "about": {},
            "failed": {},
            "stuck": [],
            "facts": facts,
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    done = nodetune("diff", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "-o", str(tmp_path / "d.json"))
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "1 changed")


def test_hosts_that_only_one_side_has_are_not_called_equal(tmp_path):
    for folder, names in (("before", ["gpu1"]), ("after", ["gpu2", "gpu3"])):
        (tmp_path / folder).mkdir()
        for name in names:
            document = {"schema": "nodetune.facts/1", "host": name, "about": {}, "facts": {}}
            (tmp_path / folder / f"{name}.json").write_text(json.dumps(document))
    text = said("diff", str(tmp_path / "before"), str(tmp_path / "after"), code=1)
    assert text.endswith("nothing to compare: no host is in both")


def test_a_rollback_says_what_it_came_to():
    done = [{"label": "/etc/a", "changed": True}, {"label": "/etc/b", "changed": False}]
    outcomes = {
        "gpu1": Outcome("gpu1", results=(Event("gpu1", "Revert", result={"done": done}),)),
        "gpu2": Outcome("gpu2", "unreachable", "refused"),
    }
    assert text_apply.rolled_back(outcomes, ["1"]) == "1 change undone, 1 host failed or unreachable"
    assert text_apply.rolled_back(outcomes, []) == "1 change would be undone, 1 host failed or unreachable"


@pytest.mark.parametrize(
    "words", [("audit", *BUNDLED, "-s", "slow-start-after-idle-on"), ("facts", "-i", "localhost", "-s", "swap-large")]
)
def test_a_dash_is_standard_output(tmp_path, words):
    done = nodetune(*words, "-o", "-", cwd=tmp_path)
    assert len(done.stdout) > 100
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_counts_one_host_as_one(capsys):
    def stopped():
        raise KeyboardInterrupt
        yield

    (left,) = run._taken("audit", stopped(), [Target("gpu1")], Terminal())
    assert (left.state, capsys.readouterr().err) == ("interrupted", "\ninterrupted: 0 of 1 host answered\n")


# Help


def test_explain_folds_hosts_that_say_the_same(tmp_path):
    for number in range(1, 20):
        facts = {"sysctl.vm.max_map_count": {"value": 65530 if number < 19 else 1048576}}
        document = {"schema": "nodetune.facts/1", "host": f"gpu{number:02}", "about": {}, "facts": facts}
        (tmp_path / f"gpu{number:02}.json").write_text(json.dumps(document))
    done = nodetune("explain", "max-map-count-low", "--facts", tmp_path)
    told = [line for line in done.stdout.splitlines() if line.startswith("On ")]
    assert told[0] == "On 18 hosts  gpu[01-18]: 65530, not as wanted"
    assert len(told) == 2
    assert told[1].startswith("On gpu19: 1048576, ")


def test_only_commands_with_a_file_say_that_its_ending_decides():
    wrong = [
        " ".join(words)
        for words, command in commands()
        for option in command.params
        if "With -o" in (getattr(option, "help", "") or "") and not any("-o" in each.opts for each in command.params)
    ]
    assert wrong == []


def test_explain_says_what_a_comparison_wants():
    assert "Wanted: the same on hosts that should be alike" in said("explain", "fleet-driver-differs", code=0)


def test_explain_says_that_a_site_switched_a_check_off(tmp_path):
    (tmp_path / "site.yml").write_text("checks:\n  swap-large: off\n")
    text = said("explain", "swap-large", "--site", str(tmp_path / "site.yml"), code=0)
    assert f"Disabled in: {tmp_path}/site.yml line 2" in text


def test_a_parameter_that_no_host_has_gets_no_fix(tmp_path):
    add = "{id: site-nope, sysctl: vm.nope_nope, accept: 1, set: 1}"
    (tmp_path / "site.yml").write_text(f"add:\n  - {add}\n")
    text = said("audit", "--transport", "local", "--site", str(tmp_path / "site.yml"), "-s", "site-nope", code=1)
    assert "Correct the name, or load its kernel module" in text
    assert "fix vm.nope_nope = 1" not in text


# Commands that are there to be pasted


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_command_in_a_text_is_not_broken(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    command = "`ssh-keyscan -p 55771 127.0.1.7 | ssh-keygen -lf -`"
    Lines(console(sys.stdout)).line(f"the key is not in known_hosts: look at it with {command}, then accept it")
    assert command in capsys.readouterr().out


@pytest.mark.parametrize("check", ["gpu-clock-unequal", "gpu-firmware-unequal", "gpu-applications-clock-low"])
def test_explain_breaks_neither_its_command_nor_its_addresses(check):
    lines = nodetune("explain", check, *BUNDLED).stdout.splitlines()
    (command,) = [line for line in lines if line.startswith("Confirm manually: ")]
    assert command in " ".join(lines)
    assert lines[lines.index(command) + 1].startswith("Side effects of the fix: ")


def test_refusals_fold_over_addresses():
    told = [("refused", f"gpu{n}", f"10.0.0.{n} port 22 refused the connection") for n in range(9)]
    ((why, hosts),) = causes(told)["refused"]
    assert (why, len(hosts)) == ("the host's port 22 refused the connection", 9)


# Passwords where nobody can type


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["-K"], "-K prompts for a password and needs a terminal: without one, use sudo without"),
        (
            ["--ask-vault-pass"],
            "--ask-vault-pass prompts for a password and needs a terminal: without one, use --vault-",
        ),
        (["--vault-id", "a@prompt"], "--vault-id LABEL@prompt prompts for a password and needs a terminal"),
    ],
)
def test_a_password_without_a_terminal_is_a_clear_error(words, hint):
    command = [sys.executable, "-m", "nodetune", "audit", *words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, start_new_session=True, check=False
    )
    assert (done.returncode, "GetPassWarning" in done.stderr) == (2, False)
    assert hint in done.stderr


# what a plan could not judge, and what comes after it


@pytest.fixture
def few_facts(tmp_path):
    """A machine whose file has the facts of one family only."""
    data = json.loads((paths.bundled("facts/recorded") / "h100-x2.json").read_text())
    data["facts"] = {name: fact for name, fact in data["facts"].items() if name.startswith("host.")}
    (tmp_path / "few.json").write_text(json.dumps(data))
    return tmp_path


def test_a_plan_names_the_checks_that_it_could_not_judge(few_facts):
    done = nodetune("plan", "--facts", "few.json", cwd=few_facts)
    assert done.returncode == 3
    assert re.search(r"^UNKNOWN: could not be read \(\d+ checks\)$", done.stdout, re.MULTILINE)
    assert re.search(r"^  unknown +\d+ checks +not collected: collect the facts again", done.stdout, re.MULTILINE)
    assert "  to do     nodetune explain --facts few.json --section unknown\n" in done.stdout
    assert re.search(r"0 findings need manual work; \d+ checks unknown\.", " ".join(done.stdout.split()))
    found = documents.valid("plan", nodetune("plan", "--facts", "few.json", "--format", "json", cwd=few_facts).stdout)
    swap = next(each for each in found["unknown"] if each["check"] == "swap-large")
    assert swap["hosts"] == ["h100-x2"]
    assert "not collected" in swap["reason"]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("--facts few.json", "audit --facts few.json"),
        (
            "--facts h200-x4 -s 'slow-start-*' -s gpu",
            "plan --facts h200-x4 -s 'slow-start-*' -s gpu --max-disruption new-sessions --export changes",
        ),
        ("--facts h100-x2 -s gpu-driver-vulnerable", "audit --facts h100-x2 -s gpu-driver-vulnerable"),
    ],
)
def test_a_plan_proposes_a_command_that_works(few_facts, words, command):
    assert f"nodetune {command}" in proposed(nodetune("plan", *shlex.split(words), cwd=few_facts))
    assert nodetune(*shlex.split(command), cwd=few_facts).returncode in (0, 1, 3)


def proposed(done):
    """Return the commands that a report proposes."""
    return re.findall(r"^(?:  to do|next) +(nodetune .+)$", done.stdout, re.MULTILINE)


def test_a_plan_of_live_hosts_proposes_a_trial_of_apply(tmp_path):
    (tmp_path / "my site.yml").write_text(
        "add:\n  - {id: site-a, sysctl: kernel.randomize_va_space, accept: 77, set: 77}\n"
    )
    words = ("-i", "localhost", "--site", "my site.yml", "-s", "site-a")
    (command,) = proposed(nodetune("plan", *words, cwd=tmp_path))
    assert command == "nodetune apply -i localhost --site 'my site.yml' -s site-a --dry-run"


def test_a_plan_for_a_host_without_findings_proposes_nothing():
    assert said("plan", *BUNDLED, "-s", "swappiness-high", code=0).endswith("Nothing was changed.")
