"""Tab: what the program answers to a shell, and a few words in real shells."""

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import threading
import time

import pytest

from nodetune.cli import completion
from tests.support.commandline import nodetune

RUN = "20260101-000000-abcd"
HOSTS = "gpu:\n  hosts: {gpu001: {}, gpu002: {}}\nlogin:\n  hosts: {login1: {}}\n"


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A folder for PATH with a nodetune that is the one under test, and waits for as long as a busy machine takes."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "nodetune").write_text(
        f"#!{sys.executable}\nfrom nodetune.cli import main as cli\nfrom nodetune.cli import completion as _complete\n"
        "_complete.MAX_SECONDS = 90\ncli.main()\n"
    )
    (folder / "nodetune").chmod(0o755)
    return folder


@pytest.fixture
def here(tmp_path, command, monkeypatch):
    """A folder with an inventory and the record of a run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{command}:{os.environ['PATH']}")
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(completion, "MAX_SECONDS", 90)  # a machine that is busy with tests is slow
    (tmp_path / "runs" / RUN).mkdir(parents=True)
    (tmp_path / "inventories" / "prod").mkdir(parents=True)
    (tmp_path / "inventories" / "prod" / "hosts.yml").write_text(HOSTS)
    (tmp_path / "inventories" / "broken.yml").write_text("a: [b\n")
    return tmp_path


def shell_or_skip(shell):
    return shutil.which(shell) or pytest.skip(f"no {shell} on this machine: apt install {shell} (CI does)")


def run(*line):
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.stderr == ""
    return done.stdout.split()


def by_bash(*words):
    script = (
        'eval "$(nodetune completion bash)"; compopt() { echo "compopt $*"; }\n'
        f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}\n"
        '_nodetune_completion nodetune; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return run(shell_or_skip("bash"), "--norc", "-c", script)


def by_fish(*words):
    line = " ".join(words).replace("'", r"\'")
    script = f"nodetune completion fish | source; complete -C '{line}' | string replace -r '\\t.*' ''"
    return run(shell_or_skip("fish"), "--no-config", "-c", script)


WORDS = {
    "a command": (("rollb",), ["rollback"]),
    "an option": (("audit", "--fail-"), ["--fail-on"]),
    "a check": (("explain", "thp-def"), ["thp-defrag-unsuitable"]),
    "a comparison of hosts": (("explain", "fleet-bios"), ["fleet-bios-differs"]),
    "an area": (("audit", "-s", "limi"), ["limits"]),
    "a check to ignore": (("audit", "--ignore", "thp-def"), ["thp-defrag-unsuitable"]),
    "a profile": (("audit", "-p", "inf"), ["inference"]),
    "a profile to show": (("profile", "show", "wor"), ["workstation"]),
    "an inventory": (("audit", "-i", "pro"), ["prod"]),
    "a host of the inventory": (("audit", "-i", "prod", "-l", "gpu00"), ["gpu001", "gpu002"]),
    "a group of the inventory": (("audit", "-i", "prod", "-l", "log"), ["login", "login1"]),
    "a host after another": (("audit", "-i", "prod", "-l", "login,gpu00"), ["login,gpu001", "login,gpu002"]),
    "a host of a list": (("audit", "-i", "gpu7,gpu8", "-l", "gpu"), ["gpu7", "gpu8"]),
    "a machine that is bundled": (("audit", "--facts", "h2"), ["h200-x4"]),
    "a run": (("rollback", "2026"), [RUN]),
    "a run to show": (("runs", "show", ""), ["last", RUN]),
}


def answered(shell, *words):
    """What the program answers when the completion of a shell asks it: type,word."""
    last = str(len(words) - 1) if shell == "bash" else words[-1]
    typed = shlex.join(word for word in words if word)
    asked = {"_NODETUNE_COMPLETE": f"{shell}_complete", "COMP_WORDS": typed, "COMP_CWORD": last}
    done = nodetune(env=asked)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize("what", WORDS)
def test_a_shell_that_asks_gets_the_words_that_fit(here, shell, what):
    words, wanted = WORDS[what]
    assert sorted(answered(shell, "nodetune", *words)) == sorted(f"plain,{word}" for word in wanted)


@pytest.mark.parametrize("shell", [by_bash, by_fish])
@pytest.mark.parametrize("what", ["a command", "an option", "a host after another", "a run to show"])
def test_tab_completes(here, shell, what):
    words, wanted = WORDS[what]
    assert sorted(shell("nodetune", *words)) == sorted(wanted)


def test_runs_of_another_folder_are_completed_too(here):
    (here / "other" / "20270101-000000-0000").mkdir(parents=True)
    wanted = ["last", "20270101-000000-0000"]
    assert by_bash("nodetune", "rollback", "--runs", "other", "") == wanted
    assert by_bash("nodetune", "runs", "--runs", "other", "show", "") == wanted


def test_where_no_known_name_begins_so_files_are_completed(here):
    assert by_bash("nodetune", "audit", "--facts", "inv") == ["compopt", "-o", "default"]
    assert by_bash("nodetune", "audit", "-i", "./inv") == ["compopt", "-o", "default"]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(
    "words", ["-i broken -l g", "-i /nowhere.yml -l g", "-l g", "-i gpu[ -l g", "--nonsense -l g", "-s none-is-so"]
)
def test_what_cannot_be_completed_is_left_alone_without_a_word(here, shell, words):
    assert answered(shell, "nodetune", "audit", *words.split()) == []


@pytest.mark.parametrize("shell", [by_bash, by_fish])
def test_a_shell_with_nothing_to_complete_shows_no_word(here, shell):
    assert shell("nodetune", "audit", *["-i", "broken", "-l", "g"]) == []


def test_an_inventory_that_takes_long_is_not_waited_for(here):
    """The program of the inventory itself lets the time of who asks it be over, once it runs."""
    slow = here / "slow.sh"
    slow.write_text("#!/bin/sh\ntouch started\nkill -ALRM $PPID\nwhile ! [ -e stop ]; do sleep 0.2; done\n")
    slow.chmod(0o755)
    try:
        assert by_bash("nodetune", "audit", "-i", "./slow.sh", "-l", "g") == []
        assert (here / "started").exists()
    finally:
        (here / "stop").touch()


def test_an_answer_may_take_only_so_long(monkeypatch):
    monkeypatch.setattr(completion, "MAX_SECONDS", 0.01)
    with pytest.raises(TimeoutError), completion._limit():
        threading.Event().wait(60)


@pytest.mark.parametrize("words", ["audit -p ", "explain thp", "rollback ", "audit -i gpu1 -l "])
def test_completing_loads_neither_ssh_nor_ansible(here, words):
    code = """
import sys
from nodetune.cli import main as cli
try:
    cli.main()
except SystemExit:
    pass
loaded = sorted({"paramiko", "ansible", "rich", "jinja2"} & set(sys.modules))
assert not loaded, loaded
"""
    count = str(len(words.split(" ")))
    env = {**os.environ, "_NODETUNE_COMPLETE": "bash_complete", "COMP_WORDS": f"nodetune {words}", "COMP_CWORD": count}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("plain,")


def typed(command, ready, line, wanted):
    """Start an interactive shell, type a line at its prompt, and read until `wanted` is on the screen."""
    parent, child = pty.openpty()
    shell = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, start_new_session=True)
    os.close(child)
    try:
        os.write(parent, ready.encode() + b"\n")
        seen = _read_until(parent, "READY>")
        os.write(parent, line.encode())
        return seen + _read_until(parent, wanted)
    finally:
        shell.kill()
        shell.wait()
        os.close(parent)


def _read_until(stream, wanted):
    seen, end = "", time.monotonic() + 90
    while wanted not in seen:
        assert time.monotonic() < end, f"{wanted!r} never came: {seen!r}"
        if select.select([stream], [], [], 1)[0]:
            seen += os.read(stream, 4096).decode(errors="replace")
    return seen


@pytest.mark.parametrize(
    ("shell", "arguments", "ready"),
    [
        ("bash", ["--norc", "-i"], """eval "$(nodetune completion bash)"; PS1='REA''DY> '"""),
        (
            "zsh",
            ["-f", "-i"],
            """autoload -Uz compinit; compinit -D -u; eval "$(nodetune completion zsh)"; PS1='REA''DY> '""",
        ),
    ],
)
def test_tab_works_at_the_prompt(here, shell, arguments, ready):
    typed([shell_or_skip(shell), *arguments], ready, "nodetune rollb\t2026\t", RUN)


def test_bash_completes_files_where_no_name_fits(here):
    (here / "node-facts.json").touch()
    ready = """eval "$(nodetune completion bash)"; PS1='REA''DY> '"""
    typed([shell_or_skip("bash"), "--norc", "-i"], ready, "nodetune audit --facts node-f\t", "node-facts.json")


def test_the_installed_file_completes_in_zsh(here):
    """`nodetune completion zsh > …/site-functions/_nodetune`, as the help says."""
    functions = here / "functions"
    functions.mkdir()
    made = subprocess.run(["nodetune", "completion", "zsh"], capture_output=True, text=True, check=True).stdout
    (functions / "_nodetune").write_text(made)
    ready = f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -D -u; PS1='REA''DY> '"
    typed([shell_or_skip("zsh"), "-f", "-i"], ready, "nodetune explain thp-def\t", "thp-defrag-unsuitable")


def test_a_shell_that_is_not_known_is_a_clear_mistake(here):
    done = subprocess.run(["nodetune", "completion", "tcsh"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr
    assert "Traceback" not in done.stderr
