"""The program as a user meets it: one clear line for every mistake, the right exit code, no traceback."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import jsonschema
import pytest

from nodetune.cli import main
from nodetune.foundation import paths
from tests.support.commandline import nodetune

MACHINE = "h200-x4"


def in_process(*arguments, env=None):
    """The program in a process of its own: for how it starts and ends, and for a probe that no substitute has touched."""
    return subprocess.run(
        [sys.executable, "-m", "nodetune", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100", **(env or {})},
        timeout=120,
        check=False,
    )


def schema(name):
    return json.loads(paths.bundled("data/schemas").joinpath(f"{name}.json").read_text())


@pytest.mark.parametrize("words", [[], ["guard"], ["tune"]])
def test_a_group_lists_each_command_once_with_its_description(words):
    group, context = main.group, click.Context(main.group)
    for word in words:
        group = group.get_command(context, word)
    listed = {name: group.get_command(context, name).get_short_help_str(200) for name in group.list_commands(context)}
    formatter = click.HelpFormatter(width=110)
    group.format_commands(context, formatter)
    rows = [line.split(maxsplit=1) for line in formatter.getvalue().splitlines() if line.startswith("  ")]
    assert sorted(rows) == sorted([name, about] for name, about in listed.items())


def test_the_name_of_a_subcommand_alone_gets_its_group():
    context = click.Context(main.group)
    for name in main.group.list_commands(context):
        group = main.group.get_command(context, name)
        for word in group.list_commands(context) if isinstance(group, click.Group) else []:
            assert f"{name} {word}" in main.group._below(context, word)


@pytest.mark.parametrize("command", main.group.list_commands(None))
def test_every_command_has_help(command):
    done = nodetune(command, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) > 4


@pytest.mark.parametrize(
    "command", ["explain numa-balancing-on", "checks --format json", "profile show", "audit --help"]
)
def test_light_commands_do_not_load_ssh_or_ansible(command):
    code = f"""
import sys
sys.argv = ["nodetune", *{command!r}.split()]
from nodetune.cli import main as cli
try:
    cli.main()
except SystemExit:
    pass
loaded = sorted({{"paramiko", "ansible", "ansible_runner"}} & set(sys.modules))
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["audti"], "unknown command 'audti': did you mean audit?"),
        (["audit", "--xyzzy"], "nodetune: no such option --xyzzy: see nodetune audit --help\n"),
        (
            ["audit", "--facts", "no-such-file"],
            "no such file or folder: no-such-file (bundled machines: h100-x2, h200-x4)",
        ),
        (["audit", "--facts", "/no/such"], "no such file or folder: /no/such (bundled machines: h100-x2, h200-x4)"),
        (["audit", "--fail-on", "bad"], "'bad' is not one of"),
        (["audit", "-s", "no-such-check"], "no check matches no-such-check"),
        (["audit", "--facts", MACHINE, "-s", "no-such-check"], "no check matches no-such-check"),
        (["audit", "--facts", MACHINE, "-s", "numa-balancing-on", "-s", "no-such"], "no check matches no-such"),
        (["audit", "--facts", MACHINE, "--ignore", "*"], "--ignore * leaves no checks"),
        (["audit", "-p", "no-such"], "unknown profile 'no-such'"),
        (["audit", "--site", "no-such.yml"], "no-such.yml: no such file"),
        (["audit", "--forks", "0"], "0 is not in the range"),
        (["explain", "numa-balancing-no"], "did you mean numa-balancing-on"),
        (["profile", "validate", "no-such.yml"], "no such file"),
        (["audit", "--facts", MACHINE, "-o", "/no/such/folder/x"], "nodetune: /no/such/folder"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, text, tmp_path):
    done = nodetune(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done
    assert text in done.stderr
    assert done.stdout == ""


def test_an_error_in_a_worker_process_is_one_line_and_exit_2():
    done = in_process("audit", "-p", "no-such")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"nodetune: unknown profile 'no-such'.*\n", done.stderr)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"facts": 5}', '{"facts": {"a": {"b": 1}}}', "\x00\x01", '{"schema": "x", "facts": {}}'],
)
def test_a_bad_fact_file_is_one_line_and_exit_code_2(content, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(content)
    done = nodetune("audit", "--facts", path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"nodetune: {path}")
    assert len(done.stderr.splitlines()) == 1


def test_the_json_output_keeps_to_its_published_schema():
    done = nodetune("audit", "--facts", MACHINE, "--format", "json", "--fail-on", "never")
    jsonschema.validate(json.loads(done.stdout), schema("audit"))
    done = nodetune("plan", "--facts", MACHINE, "--format", "json")
    jsonschema.validate(json.loads(done.stdout), schema("plan"))


def test_a_plan_writes_a_diff_for_the_scheduler_to_a_file(tmp_path):
    facts = Path(__file__).parents[2] / "data" / "synthetic" / "hgx-h200-untuned.json"
    done = nodetune(
        "plan", "--facts", facts, "--scheduler-diff", tmp_path / "slurm.diff", "-s", "slurm", "-s", "kubernetes"
    )
    assert f"{tmp_path}/slurm.diff: 4 changes proposed for Slurm and the kubelet" in done.stderr
    assert "+TaskPlugin=task/affinity,task/cgroup\n" in (tmp_path / "slurm.diff").read_text()


def test_a_fabric_is_read_before_any_host_and_needs_the_diff(tmp_path):
    facts = Path(__file__).parents[2] / "data" / "synthetic" / "hgx-h200-untuned.json"
    words = ("plan", "--facts", facts, "--fabric", tmp_path / "fabric")
    done = nodetune(*words)
    assert (done.returncode, "--fabric needs --scheduler-diff FILE" in done.stderr) == (2, True)
    for content, told in ((None, "No such file"), ("garbage\n", "is not a line of a fabric")):
        if content:
            (tmp_path / "fabric").write_text(content)
        done = nodetune(*words, "--scheduler-diff", tmp_path / "slurm.diff")
        assert (done.returncode, told in done.stderr, done.stderr.count("\n")) == (2, True, 1)
        assert not (tmp_path / "slurm.diff").exists()


def test_an_audit_of_saved_facts_says_what_the_live_one_said(tmp_path):
    """Of the very same facts: what else runs on this machine may change it between two readings."""
    live = in_process("audit", "--cache", tmp_path / "saved", "--format", "json", "--fail-on", "never")
    saved = nodetune("audit", "--facts", tmp_path / "saved", "--format", "json", "--fail-on", "never")
    findings = [
        {found["check"]: found["status"] for found in json.loads(done.stdout)["hosts"][0]["findings"]}
        for done in (live, saved)
    ]
    assert findings[0] == findings[1]


def test_collected_facts_can_be_judged_anywhere(tmp_path):
    assert in_process("facts", "-o", tmp_path / "saved").returncode in (0, 3)
    saved = nodetune("audit", "--facts", tmp_path / "saved", "--format", "json", "--fail-on", "never")
    assert len(json.loads(saved.stdout)["hosts"][0]["findings"]) > 200


def test_facts_wanted_in_a_file_are_refused_with_what_to_type(tmp_path):
    done = nodetune("facts", "-o", tmp_path / "node.json")
    assert done.returncode == 2
    assert f"nodetune facts > {tmp_path}/node.json" in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def saved(folder, *names):
    """Facts of hosts that are alike, a file each."""
    folder.mkdir()
    document = json.loads((paths.bundled("facts/recorded") / f"{MACHINE}.json").read_text())
    for name in names:
        (folder / f"{name}.json").write_text(json.dumps({**document, "host": name}))
    return folder


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        (["-l", "gpu[1-2]"], ["gpu1", "gpu2"]),
        (["-i", "gpu[2-3]"], ["gpu2", "gpu3"]),
        (["-i", "gpu[1-3]", "-l", "!gpu1"], ["gpu2", "gpu3"]),
    ],
)
@pytest.mark.parametrize("command", ["audit", "plan"])
def test_inventory_and_limit_select_saved_facts(command, options, meant, tmp_path):
    folder = saved(tmp_path / "facts", "gpu1", "gpu2", "gpu3")
    told = json.loads(nodetune(command, "--facts", folder, "--format", "json", *options).stdout)
    hosts = {each["host"] for each in told["steps"]} if command == "plan" else {each["name"] for each in told["hosts"]}
    assert sorted(hosts) == meant


@pytest.mark.parametrize("options", [["-l", "gpu7"], ["-i", "gpu7"]])
@pytest.mark.parametrize("command", ["audit", "plan"])
def test_saved_facts_of_another_host_than_is_meant_are_refused(command, options, tmp_path):
    path = saved(tmp_path / "facts", "gpu1") / "gpu1.json"
    done = nodetune(command, "--facts", path, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gpu1" in done.stderr
    assert "gpu7" in done.stderr


def test_an_output_file_appears_whole(tmp_path):
    done = nodetune("audit", "--facts", MACHINE, "--format", "json", "-o", tmp_path / "out.json", "--fail-on", "never")
    assert done.stdout == ""
    assert json.loads((tmp_path / "out.json").read_text())["hosts"]
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize("arguments", ["checks", "checks --format json", "explain numa-balancing-on"])
def test_a_reader_that_leaves_early_is_no_error_and_no_finding(arguments):
    command = f"{sys.executable} -m nodetune {arguments} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("141\n", "")


def test_the_list_of_checks_keeps_to_its_schema():
    jsonschema.validate(json.loads(nodetune("checks", "--format", "json").stdout), schema("checks"))


@pytest.mark.parametrize("arguments", ["checks", "checks --format json"])
def test_a_full_disk_is_one_line(arguments):
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m nodetune {arguments} >/dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "nodetune: standard output: No space left on device\n"


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_closed_standard_output_changes_nothing_else(output_format):
    command = f"{sys.executable} -m nodetune audit --facts {MACHINE} --fail-on never --format {output_format} >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_locale_without_the_signs_of_a_report_gets_escapes():
    done = in_process("explain", "gpu-memory-hot", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "5 \\xb0C" in done.stdout


def test_an_output_that_is_no_file_is_kept(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    assert nodetune("audit", "--facts", MACHINE, "-o", pipe, "--fail-on", "never").returncode == 0
    assert "2 medium, 3 info" in reader.communicate(timeout=120)[0]
    assert pipe.is_fifo()


def test_colour_is_for_terminals_only():
    shown = nodetune("audit", "--facts", MACHINE).stdout
    assert "2 medium, 3 info" in shown
    assert "\x1b" not in shown


def test_a_terminal_gets_colour_unless_it_says_no():
    import pty

    def on_terminal(**env):
        parent, child = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "nodetune", "audit", "--facts", MACHINE, "-s", "gpu"],
            stdout=child,
            stderr=child,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm-256color", **env},
        )
        os.close(child)
        seen = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
        process.wait()
        os.close(parent)
        return seen

    assert b"\x1b[" in on_terminal()
    assert b"\x1b[1;31m" not in on_terminal(NO_COLOR="1")


def test_a_waiver_is_shown_and_does_not_fail(tmp_path):
    found = json.loads(nodetune("audit", "--facts", MACHINE, "--format", "json", "--fail-on", "never").stdout)
    failing = next(each["check"] for each in found["hosts"][0]["findings"] if each["status"] == "fail")
    site = tmp_path / "site.yml"
    site.write_text(f"waivers:\n  - {{id: {failing}, hosts: '*', reason: known, owner: ops, until: 2099-01-01}}\n")
    done = nodetune("audit", "--facts", MACHINE, "-s", failing, "--site", site, "--fail-on", "info")
    assert done.returncode == 0
    assert "known (ops, until 2099-01-01)" in " ".join(done.stdout.split())


def test_explain_teaches_under_the_headings():
    shown = nodetune("explain", "numa-balancing-on").stdout
    headings = ("Wanted", "Fix", "Why it matters", "Confirm manually", "Side effects of the fix", "Sources")
    assert [heading for heading in headings if f"{heading}: " not in shown] == []


def test_a_bad_file_of_facts_is_one_host_not_reached(tmp_path):
    (tmp_path / "good.json").write_text((paths.bundled("facts/recorded") / f"{MACHINE}.json").read_text())
    (tmp_path / "broken.json").write_text("{")
    done = nodetune("audit", "--facts", tmp_path, "--format", "json", "--fail-on", "never")
    assert done.returncode == 3
    states = {host["name"]: host["state"] for host in json.loads(done.stdout)["hosts"]}
    assert states == {"broken": "bad facts", MACHINE: "ok"}


def test_a_plan_as_data_names_what_only_a_person_can_do():
    found = json.loads(nodetune("plan", "--facts", MACHINE, "--format", "json").stdout)
    assert found["steps"] or found["by_hand"]
    assert found["not_reached"] == []


def test_an_audit_of_this_machine_asks_for_every_needed_fact():
    found = json.loads(in_process("audit", "--format", "json", "--fail-on", "never").stdout)
    (host,) = found["hosts"]
    assert len(host["findings"]) > 200
    reasons = [each["reason"] for each in host["findings"] if each["status"] == "unknown"]
    assert not [reason for reason in reasons if "not collected" in reason]


def test_the_shell_gets_its_completion():
    done = in_process(env={"_NODETUNE_COMPLETE": "bash_source"})
    assert done.returncode == 0
    assert "_nodetune_completion" in done.stdout
