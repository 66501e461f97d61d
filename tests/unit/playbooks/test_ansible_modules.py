"""The modules and playbooks under the real ansible-playbook, on this machine.

/run and /var/lib of the runs lie in a folder of the test: each play has a mount namespace of its own.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
APART = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]

pytestmark = pytest.mark.slow


class Dumper(yaml.SafeDumper):
    """Texts come out tagged, so that Ansible takes none for a template."""


def _text(dumper, text):
    """ansible-core 2.19 reads a tagged text as if it had no quotes: one that looks like a number goes without the tag."""
    plain = dumper.resolve(yaml.ScalarNode, text, (True, False)) == "tag:yaml.org,2002:str"
    return dumper.represent_scalar("!unsafe" if plain else "tag:yaml.org,2002:str", text, style='"')


Dumper.add_representer(str, _text)


@pytest.fixture
def play(tmp_path):
    """play("remediate.yml", {variables}) → events of the modules by task, in a mount namespace of its own."""
    ansible = Path(sys.executable).parent / "ansible-playbook"
    if not shutil.which("unshare") or subprocess.run([*APART, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make a mount namespace")
    for folder in ("run", "lib", "home"):
        (tmp_path / folder).mkdir()
    inventory = tmp_path / "inventory.yml"

    def run(playbook, variables, *options, before=""):
        host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **variables}
        inventory.write_text(yaml.dump({"all": {"hosts": {"here": host}}}, Dumper=Dumper))
        command = [ansible, "-i", inventory, PLAYBOOKS / "engine" / playbook, *options]
        mounts = f"mount --bind {tmp_path}/run /run && mount --bind {tmp_path}/lib /var/lib && {before or 'true'}"
        done = subprocess.run(
            [*APART, "sh", "-c", mounts + ' && "$@"', "sh", *map(str, command)],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path / "home"),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_STDOUT_CALLBACK": "results",
                "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "callbacks"),
                "ANSIBLE_LOCALHOST_WARNING": "false",
                "ANSIBLE_LIBRARY": str(PLAYBOOKS / "library"),
                "ANSIBLE_MODULE_UTILS": str(PLAYBOOKS / "module_utils"),
            },
            capture_output=True,
            text=True,
        )
        assert done.stdout, done.stderr
        return _events(done)

    return run


def _events(done):
    """What each task gave, loops laid flat: `of(task)` lists results, `states` the task's own end."""
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    flat = [(one["task"], item) for one in said for item in one["result"].get("results", [one["result"]])]
    return SimpleNamespace(
        rc=done.returncode,
        stderr=done.stderr,
        of=lambda name: [result for task, result in flat if task == name and not result.get("skipped")],
        states=[(one["task"], one["state"]) for one in said],
    )


def variables(groups, run="run-1"):
    return {"nodetune_run": run, "nodetune_groups": groups, "nodetune_controller": "anna@head1"}


def group(name, changes, **more):
    return {"group": name, "disruption": "none", "guard": {}, "checks": [f"{name}-wrong"], "changes": changes, **more}


def files(*wishes):
    return [{"change": "file", "path": str(path), "content": content} for path, content in wishes]


@pytest.fixture
def etc(tmp_path):
    folder = tmp_path / "etc"
    folder.mkdir()
    return folder


def test_dry_run_run_and_revert_show_the_same_and_restore_all(play, tmp_path, etc):
    (etc / "a").write_text("old\n")
    evil = "{{ lookup('pipe', 'touch " + str(tmp_path / "evil") + "') }}\n"
    given = variables(
        [
            group("first", files((etc / "a", "one\n"), (etc / "new.d/b", evil))),
            group("second", files((etc / "a", "two\n"))),
            group("third", [{"change": "value", "path": "/proc/sys/no/such", "value": "1"}]),
        ]
    )

    dry = play("remediate.yml", given, "--check", "--diff")
    assert dry.rc == 0
    assert (etc / "a").read_text() == "old\n"
    assert not (etc / "new.d").exists()
    assert not (tmp_path / "run/nodetune").exists()
    assert not (tmp_path / "lib/nodetune").exists()

    real = play("remediate.yml", given, "--diff")
    assert real.rc == 0
    assert [one["diff"] for one in real.of("Change")] == [one["diff"] for one in dry.of("Change")]
    assert [one["changed"] for one in real.of("Change")] == [True, True, False]
    problem = {"checks": ["third-wrong"], "label": "/proc/sys/no/such", "message": "/proc/sys/no/such is not there"}
    assert real.of("Change")[2]["problems"] == [problem]
    assert (etc / "a").read_text() == "two\n"
    assert (etc / "new.d/b").read_text() == evil
    assert not (tmp_path / "evil").exists(), "a text was run as a template"
    assert not (tmp_path / "run/nodetune/lock").exists(), "the host is free again"

    entries = [entry for one in real.of("Change") for entry in one["entries"]]
    shutil.rmtree(tmp_path / "lib/nodetune")  # the host has lost its journal: the controller's copy serves
    back = {"nodetune_run": "back-1", "nodetune_of": "run-1", "nodetune_entries": entries}
    dry_back = play("revert.yml", back, "--check", "--diff").of("Revert the rest")
    real_back = play("revert.yml", back, "--diff").of("Revert the rest")
    assert [one["diff"] for one in dry_back] == [one["diff"] for one in real_back]
    assert (real_back[0]["refused"], real_back[0]["problems"]) == ([], [])
    assert (etc / "a").read_text() == "old\n"
    assert sorted(etc.iterdir()) == [etc / "a"]


def test_a_second_run_changes_nothing_and_leaves_no_journal(play, tmp_path, etc):
    groups = [group("first", files((etc / "a", "one\n")))]
    play("remediate.yml", variables(groups))
    again = play("remediate.yml", variables(groups, run="run-2"))
    assert [one["changed"] for one in again.of("Change")] == [False]
    assert [path.name for path in (tmp_path / "lib/nodetune/runs").iterdir()] == ["run-1"]


def test_a_host_of_another_run_waits_until_it_is_taken_over(play, tmp_path, etc):
    groups = [group("first", files((etc / "a", "one\n")))]
    held = {"run": "theirs", "controller": "ben@head2", "since": 0, "boot": boot_id()}
    (tmp_path / "run/nodetune").mkdir()
    (tmp_path / "run/nodetune/lock").write_text(json.dumps(held))
    refused = play("remediate.yml", variables(groups))
    assert refused.rc == 2
    assert refused.states == [("Begin", "failed")]
    assert "run theirs of ben@head2 has been running on this host since" in refused.of("Begin")[0]["msg"]
    assert not (etc / "a").exists()

    taken = play("remediate.yml", {**variables(groups), "nodetune_take_over": "theirs"})
    assert taken.rc == 0
    assert (etc / "a").exists()


def test_a_run_that_was_interrupted_is_told_by_the_next(play, tmp_path, etc):
    play("remediate.yml", variables([group("first", files((etc / "a", "one\n")))]))
    journal = tmp_path / "lib/nodetune/runs/run-1/journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"ended"' not in line))
    told = play("remediate.yml", variables([group("first", files((etc / "b", "one\n")))], run="run-2"))
    assert [(one["run"], one["did"]) for one in told.of("Begin")[0]["interrupted"]] == [("run-1", [str(etc / "a")])]
    assert (etc / "b").exists(), "and goes on"


def test_a_full_disk_stops_before_anything_is_changed(play, etc, tmp_path):
    given = variables([group("first", files((etc / "a", "x" * 50_000))), group("second", files((etc / "b", "b")))])
    full = "mount -t tmpfs -o size=16k tmpfs /var/lib && head -c 12k /dev/zero > /var/lib/filler"
    stopped = play("remediate.yml", given, before=full)
    assert stopped.rc == 2
    first, second = stopped.of("Change")
    assert first["msg"].endswith("/journal.jsonl cannot be written: no space left on device")
    assert second["msg"].startswith("not tried, after an earlier step: ")
    assert list(etc.iterdir()) == []
    assert not (tmp_path / "run/nodetune/lock").exists(), "the host is free again"


def test_a_full_disk_keeps_the_old_file_and_other_changes(play, etc, tmp_path):
    (tmp_path / "small").mkdir()
    wishes = files((tmp_path / "small/a", "x" * 50_000), (etc / "b", "b\n"))
    full = (
        f"mount -t tmpfs -o size=16k tmpfs {tmp_path}/small && echo old > {tmp_path}/small/a"
        f" && trap 'ls -A {tmp_path}/small > {tmp_path}/seen; cat {tmp_path}/small/a >> {tmp_path}/seen' EXIT"
    )
    done = play("remediate.yml", variables([group("first", wishes)]), before=full)
    assert done.rc == 0
    (problem,) = done.of("Change")[0]["problems"]
    assert problem["message"] == (
        f"{tmp_path}/small/a cannot be written: no space left on device"
        f" (it needs 50000 bytes in {tmp_path}/small: free some space, then run this again)"
    )
    assert (tmp_path / "seen").read_text() == "a\nold\n"
    assert (etc / "b").read_text() == "b\n"


def test_a_read_only_etc_is_one_line_for_each_file(play, etc):
    given = variables([group("first", files((etc / "a", "x"), (etc / "b", "x")))])
    done = play("remediate.yml", given, before=f"mount --bind {etc} {etc} && mount -o remount,bind,ro {etc}")
    assert done.rc == 0
    assert [one["message"] for one in done.of("Change")[0]["problems"]] == [
        f"{etc}/{name} cannot be written: read-only file system" for name in "ab"
    ]


def test_an_unknown_kind_of_change_stops_the_host(play, etc):
    given = variables([group("first", [*files((etc / "a", "x")), {"change": "magic", "path": "/x"}])])
    stopped = play("remediate.yml", given)
    assert stopped.rc == 2
    assert stopped.of("Change")[0]["msg"].startswith("change 2 has an unknown kind")
    assert not (etc / "a").exists()


def test_every_kind_of_resource_is_sent_along():
    """Ansible packs what a module names in its imports, nothing else."""
    package = PLAYBOOKS / "module_utils/nodetune_host"
    statements = ast.walk(ast.parse((package / "executor.py").read_text()))
    (named,) = [each.names for each in statements if getattr(each, "module", "") == "resources"]
    assert sorted(each.name for each in named) == sorted(path.stem for path in package.glob("resources/[a-z]*.py"))


def boot_id():
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
