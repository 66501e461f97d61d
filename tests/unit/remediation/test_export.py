"""The exported plan: plain files, snippets, and a role that a real ansible-playbook runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nodetune.api import remedies
from nodetune.api.model import HostFacts, HostResult, Value
from nodetune.foundation import paths
from nodetune.remediation import export, host_changes, plan
from tests.support.commandline import nodetune
from tests.support.fixing import finding_of

ANSIBLE = Path(sys.executable).parent / "ansible-playbook"


def step(remedy, value):
    return finding_of(remedy, value, check=f"{remedy.target}-wrong")


def built(host, *steps):
    running = Value({"active": "active", "enabled": "enabled"})
    facts = HostFacts(host, {"own.files": Value({}), "services.docker": running, "memory.swaps": Value({})})
    return plan.plan(HostResult(host, "ok", facts=facts, findings=steps))


def swappiness(value=10):
    return step(remedies.sysctl("vm.swappiness"), value)


def playbook(folder, *options, hosts=("localhost",)):
    environment = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_HOME": str(folder.parent / "home"),
        "ANSIBLE_LOCAL_TEMP": str(folder.parent / "tmp"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",
    }
    mine = ("-e", "ansible_become=false", "-e", f"ansible_python_interpreter={sys.executable}")
    command = (ANSIBLE, "-i", f"{','.join(hosts)},", "-c", "local", *mine, "apply.yml", "--check", "--diff", *options)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def texts(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_files_stand_as_they_would_land(tmp_path):
    export.write(tmp_path / "out", [built("a", swappiness(), step(remedies.module("nvidia_uvm"), "loaded"))])
    found = texts(tmp_path / "out" / "files")
    assert "vm.swappiness = 10" in found["etc/sysctl.d/zz-nodetune.conf"]
    assert found["etc/modules-load.d/nodetune-nvidia_uvm.conf"].endswith("\nnvidia_uvm\n")


def test_files_of_others_are_exported_as_snippets(tmp_path):
    docker = [
        step(remedies.docker_daemon("default-shm-size"), "16g"),
        step(remedies.docker_daemon("default-ulimits"), {"memlock": {"Hard": -1}}),
    ]
    export.write(tmp_path / "out", [built("a", step(remedies.swap_off(), 0), *docker)])
    snippets = texts(tmp_path / "out" / "snippets")
    assert set(json.loads(snippets["etc/docker/daemon.json"])) == {"default-shm-size", "default-ulimits"}
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "/etc/fstab: swap lines are commented out" in readme
    assert "/etc/docker/daemon.json" in readme


def test_alike_hosts_share_a_set_and_others_have_their_own(tmp_path):
    work = [built("gpu01", swappiness()), built("gpu02", swappiness()), built("z", swappiness(1))]
    told = export.write(tmp_path / "out", work)
    assert "2 sets of changes for 3 hosts" in told
    assert sorted(path.name for path in (tmp_path / "out" / "files").iterdir()) == ["set-1", "set-2"]
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "## set-1: gpu[01-02]" in readme
    assert "cp -a files/set-2/. /mnt/" in readme


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("keep")
    with pytest.raises(export.ExportError, match="is not empty"):
        export.write(tmp_path, [built("a", swappiness())])
    assert texts(tmp_path) == {"mine": "keep"}


def test_a_plan_with_nothing_in_it_is_not_exported(tmp_path):
    with pytest.raises(export.ExportError, match="nothing to export"):
        export.write(tmp_path / "out", [built("a")])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", ["/etc/../../x", "etc/x", "/../x"])
def test_no_file_is_written_outside_of_the_folder(tmp_path, path):
    change = {"change": "file", "path": path, "content": "x", "mode": "0644"}
    planned = host_changes.PlannedChange("sysctl", "none", ("a",), (change,))
    with pytest.raises(export.ExportError, match="not a path"):
        export.write(tmp_path / "out", [plan.HostPlan(HostResult("a", "ok"), changes=(planned,))])
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_the_role_shows_in_check_mode_what_the_files_hold(tmp_path):
    export.write(tmp_path / "out", [built("localhost", swappiness(17))])
    done = playbook(tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (tmp_path / "out" / "files/etc/sysctl.d/zz-nodetune.conf").read_text().splitlines():
        assert f"+{line}" in done.stdout
    assert "mode 0644" in done.stdout
    assert "-/proc/sys/vm/swappiness" in done.stdout


def seen(tmp_path, tasks, hosts=("localhost",), **variables):
    """What `nodetune_seen` is on each host after `tasks`, as ansible-playbook works it out."""
    told = str(tmp_path / "seen-{{ inventory_hostname }}")
    tell = {"copy": {"content": "{{ nodetune_seen | to_json }}", "dest": told}, "check_mode": False}
    play = {"hosts": "all", "gather_facts": False, "vars": variables, "tasks": [*tasks, tell]}
    (tmp_path / "apply.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    done = playbook(tmp_path, hosts=hosts)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((tmp_path / f"seen-{host}").read_text()) for host in hosts]


@pytest.mark.slow
def test_a_role_that_was_refused_somewhere_does_not_end_well(tmp_path):
    results = [{"problems": [{"message": "no space"}]}, {"waits": "python (7) uses a GPU", "problems": []}, {}]
    variables = {
        "nodetune_changed": {"results": [*results, results[1]]},
        "nodetune_seen": "{{ nodetune_problems }}",
    }
    assert seen(tmp_path, yaml.safe_load(export._own("remember.yml")), **variables) == [
        ["no space", "python (7) uses a GPU"]
    ]


LINK = {"change": "link"}
OTHER = {"change": "file"}


PARTS = [
    ([], [0, 0]),
    ([("none", OTHER), ("reboot", OTHER)], [0, 2]),
    ([("none", LINK), ("none", OTHER), ("idle node", OTHER)], [1, 1]),
    (
        [("none", OTHER), ("none", LINK), ("service restart", OTHER), ("network flap", LINK), ("reboot", OTHER)],
        [2, 4],
    ),
    ([("service restart", OTHER), ("network flap", LINK), ("idle node", OTHER)], [0, 2]),
]
"""Groups of changes → where the first and the second part of a play over them end."""


@pytest.mark.slow
def test_links_are_confirmed_before_slow_steps_follow(tmp_path):
    """One play, in which each host has groups of its own."""
    own = yaml.safe_load((paths.shared("playbooks") / "roles/changes/vars/main.yml").read_text())
    hosts = [f"host{number}" for number in range(len(PARTS))]
    (tmp_path / "host_vars").mkdir()
    for host, (groups, _) in zip(hosts, PARTS, strict=True):
        made = [
            host_changes.PlannedChange(f"g{n}", disruption, (), (change,)).data()
            for n, (disruption, change) in enumerate(groups)
        ]
        (tmp_path / "host_vars" / f"{host}.yml").write_text(yaml.safe_dump({"nodetune_groups": made}))
    ends = "{{ [nodetune_first | int, nodetune_second | int] }}"
    assert seen(tmp_path, [], hosts, **own, nodetune_seen=ends) == [parts for _, parts in PARTS]


@pytest.mark.slow
def test_a_host_without_a_plan_stops_unless_given_a_set(tmp_path):
    work = [built("one", swappiness()), built("two", swappiness(1))]
    export.write(tmp_path / "out", work)
    done = playbook(tmp_path / "out")
    assert done.returncode != 0
    assert "No set of changes was planned for this host" in done.stdout + done.stderr
    given = playbook(tmp_path / "out", "-e", "nodetune_set=set-2")
    assert given.returncode == 0, given.stdout + given.stderr
    assert "+vm.swappiness = 1\n" in given.stdout


@pytest.mark.slow
def test_a_value_that_looks_like_a_template_runs_nowhere(tmp_path):
    witness = tmp_path / "ran"
    hostile = f"{{{{ lookup('pipe', 'touch {witness}') }}}}"
    work = [built("localhost", step(remedies.sysctl("kernel.core_pattern"), hostile))]
    export.write(tmp_path / "out", work)
    done = playbook(tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"+kernel.core_pattern = {hostile}" in done.stdout
    assert not witness.exists()
    assert hostile in texts(tmp_path / "out")["files/etc/sysctl.d/zz-nodetune.conf"]


TEXTS = ["0644", "10", "no", "", "null", "~", "1:30", "2026-11-21", "{{ x }}", "a: b # c", "é\n"]


@pytest.mark.slow
def test_a_text_reaches_ansible_as_the_text_that_it_is(tmp_path):
    given = [{text or "empty": [text]} for text in TEXTS]
    (tmp_path / "vars.yml").write_text(export._as_data("given", given))
    tasks = [{"include_vars": "vars.yml"}]
    assert seen(tmp_path, tasks, nodetune_seen="{{ given }}") == [given]


def test_the_role_has_all_modules_and_nothing_of_this_machine(tmp_path):
    export.write(tmp_path / "out", [built("a", swappiness())])
    found = texts(tmp_path / "out")
    assert {"role/library/nodetune_change.py", "role/module_utils/nodetune_host/core.py"} <= set(found)
    assert "role/module_utils/pynvml.py" in found
    assert str(Path(export.__file__).parent) not in "".join(found.values())
    assert not any("__pycache__" in name or "/." in name for name in found)
    for name, text in found.items():
        if name.endswith(".yml") and "/vars/" not in name:
            yaml.safe_load(text)


def nodetune_plan(*arguments):
    return nodetune("plan", "--facts", "h200-x4", "-s", "slow-start-*", *arguments)


def test_the_command_writes_its_folder_only_once(tmp_path):
    first = nodetune_plan("--export", tmp_path / "out")
    assert first.returncode == 0, first.stderr
    assert "slow-start-after-idle-on" in first.stdout
    assert "see README.md" in first.stderr
    second = nodetune_plan("--export", tmp_path / "out")
    assert second.returncode == 2
    assert second.stderr.startswith("nodetune: ")
    assert len(second.stderr.splitlines()) == 1


def test_the_command_shows_every_file_on_request():
    assert "net.ipv4.tcp_slow_start_after_idle = 0" in nodetune_plan("--files").stdout


def test_an_export_without_space_leaves_nothing(full_disk):
    done, left = full_disk("64k", "plan", "--facts", "h200-x4", "--export", "out")
    assert (done.returncode, left) == (2, [])
    assert re.fullmatch(r"nodetune: out/\S+: No space left on device\n", done.stderr), done.stderr
