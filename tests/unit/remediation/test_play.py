"""Ansible, started for real on this machine: what reaches it, what comes back, and that nothing of it stays."""

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from nodetune.foundation import paths
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target
from nodetune.remediation.ansible import inventory, play, runner, workspace
from nodetune.remediation.ansible.errors import telling
from nodetune.remediation.ansible.events import Outcome, Reader
from nodetune.remediation.ansible.play import PlayOptions
from nodetune.remediation.runs.record import Run

HERE = Target("here", connection="local", python=sys.executable)
PASSWORD = "correct-horse-9f3a"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # each runs Ansible


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Working folders of these tests lie where they can be counted."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(workspace, "places", lambda: [folder])
    return folder


@pytest.fixture
def written(tmp_path):
    """Writes a playbook of these tasks."""

    def write(*tasks):
        path = tmp_path / "play.yml"
        path.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": list(tasks)}]))
        return path

    return write


def run(argv, **more):
    return {"name": "run it", "ansible.builtin.command": {"argv": argv}, **more}


def traps(folder):
    """Texts that leave a file behind when any part of Ansible evaluates them, and some that are hard to carry."""
    touch = f"{{{{ lookup('ansible.builtin.pipe', 'touch {folder}/owned') }}}}"
    return [
        touch,
        "{% for n in range(3) %}" + touch + "{% endfor %}",
        "{# " + touch + " #}",
        "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162",
        "!unsafe x",
        "#jinja2: variable_start_string:'['\n[" + touch[2:-2] + "]",
        "a\0b\x85\u2028\ufeffé😀\x7f",
        "yes",
        "1e3",
        "0644",
        "10",
        "null",
        "<<",
        "=",
        "2026-11-21",
        "1:30",
        "0o17",
        "- a: b",
        "~",
        "",
        " x ",
        "trailing\n\n",
        "$HOME ~ %s",
    ]


def test_values_of_hosts_reach_ansible_as_data(written, tmp_path):
    texts = traps(tmp_path)
    groups = [
        {"group": text, "changes": [{"text": text, text: [text, {text: text}], "n": 0, "z": None}]} for text in texts
    ]
    path = written(
        {"name": "all", "ansible.builtin.debug": {"var": "nodetune_groups"}},
        {
            "name": "each",
            "ansible.builtin.ping": {"data": "{{ item.changes[0].text }}"},
            "loop": "{{ nodetune_groups }}",
            "loop_control": {"label": "{{ item.group }}"},
        },
    )
    outcome = play.play(path, [HERE], {"here": {"nodetune_groups": groups}})["here"]
    assert (outcome.state, outcome.message) == ("ok", "")
    assert not (tmp_path / "owned").exists()
    shown, *each = outcome.results
    assert shown.result["nodetune_groups"] == groups
    assert [event.result["ping"] for event in each if "ping" in event.result] == texts


def test_a_play_names_its_run_and_the_record_keeps_its_events(written, tmp_path):
    earlier = Run.create("apply", {}, ["here"], None, tmp_path / "runs")
    earlier.finish(0)
    now = Run.create("apply", {}, ["here"], None, tmp_path / "runs")
    seen = "{{ nodetune_run }} {{ nodetune_take_over }} {{ nodetune_controller }}"
    task = {"name": "tell", "ansible.builtin.ping": {"data": seen}}
    outcome = play.play(written(task), [HERE], {}, run=now)["here"]
    assert outcome.results[0].result["ping"] == f"{now.id} {earlier.id} {os.uname().nodename}"
    assert [(event["host"], event["task"], event["status"]) for event in now.events()] == [("here", "tell", "ok")]


def test_a_play_of_nodetune_is_found_by_its_name():
    outcome = play.play("metrics", [HERE], {"here": {"nodetune_port": 1, "nodetune_tries": 1}})["here"]
    assert outcome.state == "failed"
    assert "serves no metric of a GPU at http://127.0.0.1:1/metrics" in outcome.message


class Started:
    """Replaces Ansible: notes what each play was started with."""

    def __init__(self, monkeypatch):
        self.given = []
        monkeypatch.setattr(runner, "run", self)

    def __call__(self, _name, targets, variables, _connection, arguments, seconds, _on_event):
        self.given.append((variables, arguments, seconds))
        return {target.name: Outcome(target.name) for target in targets}


def test_hosts_that_wait_for_their_turn_have_time_too(monkeypatch):
    started = Started(monkeypatch)
    hosts = [Target(f"gpu{number}") for number in range(33)]
    play.play("reboot", hosts[:16], {}, PlayOptions(seconds=100))
    play.play("reboot", hosts, {}, PlayOptions(seconds=100))
    play.play("reboot", hosts, {}, PlayOptions(seconds=100, forks=4))
    play.play("reboot", hosts, {}, PlayOptions(seconds=100, forks=200))
    assert [seconds for _, _, seconds in started.given] == [100, 300, 900, 300]


def test_a_dry_run_has_a_name_and_a_hosts_own_variables_win(monkeypatch):
    started = Started(monkeypatch)
    given = {"here": {"nodetune_run": "an earlier one", "x": 1}}
    play.play("revert", [HERE, Target("there")], given, PlayOptions(check=True))
    variables, arguments, _ = started.given[0]
    assert (variables["here"]["nodetune_run"], variables["here"]["x"]) == ("an earlier one", 1)
    assert variables["there"]["nodetune_run"] == "dry-run"
    assert "--check" in arguments


def test_on_no_hosts_nothing_is_started(monkeypatch):
    started = Started(monkeypatch)
    assert play.play("revert", [], {}) == {}
    assert started.given == []


def test_the_order_of_keys_is_kept():
    text = inventory.inventory({"h0": {"v": {"b": 1, "a": 2}}})
    assert text.index('"b"') < text.index('"a"')


def test_half_a_character_is_refused_before_anything_is_sent(written):
    outcome = play.play(written(run(["true"])), [HERE], {"here": {"x": ["\ud800"]}})["here"]
    assert (outcome.state, "not text" in outcome.message) == ("unreachable", True)


@pytest.mark.parametrize("name", ["gpu[01:09]", "a:22", "{{ 7*7 }}", "all", "-o", "x" * 300, "h 1"])
def test_a_host_may_be_called_anything(written, name):
    events = []
    target = Target(name, connection="local", python=sys.executable)
    outcomes = play.play(written(run(["echo", "hi"])), [target], {}, on_event=events.append)
    assert outcomes[name].state == "ok"
    assert outcomes[name].results[0].result["stdout"] == "hi"
    assert {event.host for event in events} == {name}


def test_events_come_live_with_host_task_item_and_status(written):
    events = []
    path = written(
        run(["echo", "{{ item }}"], loop=["a", "b"]),
        run(["true"], when=False),
        run(["false"], ignore_errors=True),
        run(["false"]),
        run(["echo", "never"]),
    )
    outcome = play.play(path, [HERE], {}, on_event=events.append)["here"]
    told = [(event.status, event.item, event.changed) for event in events if event.status != "started"]
    assert told[:4] == [("ok", "a", True), ("ok", "b", True), ("ok", "", True), ("skipped", "", False)]
    assert [status for status, _, _ in told[4:]] == ["failed", "failed"]
    assert outcome.state == "failed"
    assert "non-zero return code" in outcome.message
    assert events[-1].seconds > 0


def test_check_mode_is_ansibles(written, tmp_path):
    path = written({"name": "touch", "ansible.builtin.file": {"path": f"{tmp_path}/made", "state": "touch"}})
    outcome = play.play(path, [HERE], {}, PlayOptions(check=True))["here"]
    assert (outcome.state, outcome.results[0].changed) == ("ok", True)
    assert not (tmp_path / "made").exists()


def test_module_results_are_gathered_in_order_as_objects():
    reader = Reader({"h0": "gpu1"})
    for entries in ([{"n": 1}, "junk"], {"n": 2}, None, [[{"n": 9}]], [{"n": 3}]):
        res = {"entries": entries, "changed": "yes", "invocation": {"module_args": {"x": 1}}, "_ansible_item_label": 7}
        reader.read({"event": "runner_item_on_ok", "event_data": {"host": "h0", "task": "t", "res": res}})
    for junk in ({}, {"event": "runner_on_ok"}, {"event": "runner_on_ok", "event_data": {"host": "h9", "res": []}}):
        assert reader.read(junk) is None
    outcome = reader.outcomes()["gpu1"]
    assert [entry["n"] for entry in outcome.gathered("entries")] == [1, 2, 3]
    assert not any(event.changed or "invocation" in event.result for event in outcome.results)


def test_messages_are_bounded_lines_without_passwords():
    reader = Reader({"h0": "gpu1"}, [PASSWORD])
    res = {"msg": f"no {PASSWORD}\n\x1b[2J" + "x" * 9000}
    event = reader.read({"event": "runner_on_failed", "event_data": {"host": "h0", "task": "\x1b[2J", "res": res}})
    assert event.message.startswith("no (password) \\x1b[2Jxxx")
    assert len(event.message) <= 400
    assert "\x1b" not in event.task


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"msg": "Task failed: Missing sudo password"}, "--ask-become-pass"),
        ({"msg": "Incorrect sudo password"}, "did not accept"),
        ({"module_stderr": "bob is not in the sudoers file."}, "/etc/sudoers.d"),
        ({"module_stdout": "/bin/sh: 1: sudo: not found\r\n"}, "sudo is not installed"),
        ({"module_stdout": "/bin/sh: 1: /usr/bin/python3: not found\r\n"}, "ansible_python_interpreter"),
        (
            {"msg": "ansible-core requires a minimum of Python version 3.8. Current version: 3.6.15"},
            "(requires a minimum of Python version 3.8. Current version: 3.6.15)",
        ),
        ({"msg": "Failed to connect to the host via ssh: Host key verification failed."}, "--accept-new-host-keys"),
        ({"msg": ["no", "text"]}, "['no', 'text']"),
        ({}, "without a message"),
    ],
)
def test_a_failure_says_what_to_do(result, says):
    assert says in telling(result)


def test_ansible_sees_the_prompt_of_sudo_rs():
    place = paths.shared("playbooks") / "become" / "nodetune_sudo.py"
    plugin = runpy.run_path(str(place))["BecomeModule"]()
    plugin.prompt = "[sudo via ansible, key=abc] password:"
    assert plugin.check_password_prompt(b"[sudo: [sudo via ansible, key=abc] password:] Password: ")
    assert plugin.check_password_prompt(b"[sudo via ansible, key=abc] password:")
    assert not plugin.check_password_prompt(b"[sudo: [sudo via ansible, key=def] password:] Password: ")
    assert plugin.check_incorrect_password(b"sudo: Authentication failed, try again.\n")
    assert plugin.check_missing_password(b"sudo: interactive authentication is required\n")


def leftovers(mark):
    """Processes that carry a mark in their arguments."""
    return [each for each in map(int, filter(str.isdigit, os.listdir("/proc"))) if mark in arguments(each)]


def arguments(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:  # it has ended
        return ""


def wait(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_no_file_stays_and_no_password_is_visible(written, tmp_path, place):
    """Two processes look: one of the play's own, and this one while the play runs."""
    path = written(
        run(["sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'"]),
        run(["sh", "-c", "sleep 987654 & echo $!"]),
    )
    target = Target("here", connection="local", python=sys.executable, password=PASSWORD, become_password=PASSWORD)
    seen = set()

    def look(_event):
        seen.update(each.name for each in place.iterdir())
        assert {each.stat().st_mode & 0o777 for each in place.iterdir()} == {0o700}

    outcome = play.play(path, [target], {}, on_event=look)["here"]
    assert outcome.state == "ok"
    assert PASSWORD not in outcome.results[0].result["stdout"]
    assert seen
    assert list(place.iterdir()) == []
    assert not leftovers("987654")


def test_the_users_own_ansible_settings_have_no_say(written, tmp_path, monkeypatch):
    config = tmp_path / "ansible.cfg"
    config.write_text(
        "[defaults]\nstdout_callback = nonsense\nstrategy = nonsense\nlibrary = /nowhere\nbecome = true\n"
    )
    monkeypatch.setenv("ANSIBLE_CONFIG", str(config))
    monkeypatch.setenv("ANSIBLE_STRATEGY", "nonsense")
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "nonsense")
    monkeypatch.setenv("ANSIBLE_CALLBACKS_ENABLED", "nonsense")
    monkeypatch.setenv("JOB_ID", "not a number")
    monkeypatch.chdir(tmp_path)
    assert play.play(written(run(["id", "-u"])), [HERE], {})["here"].state == "ok"


def test_a_playbook_that_cannot_be_read_says_why(tmp_path):
    path = tmp_path / "broken.yml"
    path.write_text("- hosts: all\n  tasks:\n    - nonsense_module_xyz: {}\n")
    outcome = play.play(path, [HERE], {})["here"]
    assert outcome.state == "interrupted"
    assert "nonsense_module_xyz" in outcome.message


def test_the_play_ends_at_its_time_limit(written, place):
    path = written(run(["sleep", "876543"]))
    outcome = play.play(path, [HERE], {}, PlayOptions(seconds=4))["here"]
    assert outcome.state == "interrupted"
    assert "not finished within 4 s" in outcome.message
    assert not leftovers("876543")
    assert list(place.iterdir()) == []


def test_ctrl_c_ends_ansible_and_reports_what_was_done(written):
    def interrupt(event):
        if event.status == "started" and event.task == "run it":
            threading.Thread(target=press, daemon=True).start()

    def press():
        if wait(lambda: leftovers("765432")):
            os.kill(os.getpid(), signal.SIGINT)

    path = written({"name": "before", "ansible.builtin.command": "echo first"}, run(["sleep", "765432"]))
    outcome = play.play(path, [HERE], {}, on_event=interrupt)["here"]
    assert (outcome.state, outcome.message) == ("interrupted", "stopped by Ctrl-C (during: run it)")
    assert outcome.results[0].result["stdout"] == "first"
    assert not leftovers("765432")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_the_caller_ends_the_play_too(written, place):
    def fail(event):
        raise RuntimeError("full disk")

    with pytest.raises(RuntimeError, match="full disk"):
        play.play(written(run(["sleep", "654321"])), [HERE], {}, on_event=fail)
    assert wait(lambda: not leftovers("654321"))
    assert list(place.iterdir()) == []


def test_a_killed_controller_leaves_no_ansible_or_passwords(written, tmp_path, place):
    path = written(run(["sleep", "543210"]))
    code = f"""
import sys
from pathlib import Path
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible import workspace as desk
from nodetune.hosts.target import Target
desk.places = lambda: [Path({str(place)!r})]
play.play(Path({str(path)!r}), [Target("here", connection="local", python=sys.executable)], {{}})
"""
    controller = subprocess.Popen([sys.executable, "-c", code])
    try:
        assert wait(lambda: leftovers("543210"))
        assert list(place.iterdir())
    finally:
        controller.kill()
        controller.wait()
    assert wait(lambda: not leftovers("543210") and not leftovers("ansible-playbook -i"))
    assert wait(lambda: not list(place.iterdir()))


def test_the_next_start_removes_what_a_killed_run_left(place):
    dead, young = place / f"{workspace.PREFIX}dead", place / f"{workspace.PREFIX}young"
    for each in (dead, young):
        each.mkdir()
    (dead / "lock").touch()
    (dead / "hosts.yml").write_text(PASSWORD)
    (place / "other").mkdir()
    with workspace.opened() as mine:
        workspace.sweep()
        assert mine.folder.is_dir()
        assert sorted(each.name for each in place.iterdir()) == sorted([mine.folder.name, young.name, "other"])


def test_hosts_are_reached_as_nodetunes_own_ssh_reaches_them(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host trusting\n  StrictHostKeyChecking no\n")
    common = {"ssh_args": ("-F", str(config)), "port": 2222, "user": "bob", "key_file": "/k", "become": True}
    strict = inventory.PlayInventory(SessionOptions()).variables(
        Target("gpu1", address="10.0.0.1", become_password=PASSWORD, **common)
    )
    assert strict["ansible_host"] == "10.0.0.1"
    assert (strict["ansible_port"], strict["ansible_user"], strict["ansible_ssh_private_key_file"]) == (
        2222,
        "bob",
        "/k",
    )
    assert (strict["ansible_become"], strict["ansible_become_password"]) == (True, PASSWORD)
    assert "StrictHostKeyChecking=yes" in strict["ansible_ssh_args"]
    assert f"-F {config}" in strict["ansible_ssh_args"]
    trusting = inventory.PlayInventory(SessionOptions()).variables(Target("trusting", **common))
    assert "StrictHostKeyChecking=accept-new" in trusting["ansible_ssh_args"]
    new = inventory.PlayInventory(SessionOptions(accept_new_host_keys=True)).variables(Target("gpu1", **common))
    assert "StrictHostKeyChecking=accept-new" in new["ansible_ssh_args"]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (Target("a", problem="ansible_port: no number"), "ansible_port: no number"),
        (Target("a", connection="docker"), "'docker': only ssh, paramiko and local"),
        (Target("a", address="-oProxyCommand=touch /tmp/x"), "is not a valid host name"),
        (Target("a", address="{{ 7 }}"), "is not a valid host name"),
    ],
)
def test_ansible_does_not_try_hosts_that_nodetune_cannot_reach(written, target, says):
    outcome = play.play(written(run(["true"])), [target, HERE], {})
    assert (outcome["a"].state, outcome["here"].state) == ("unreachable", "ok")
    assert says in outcome["a"].message
