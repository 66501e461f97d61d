"""What a group sets now waits until its files can be written. On real read-only mounts, in a namespace of the test's own."""

import json
import os
import shutil
import subprocess
import sys

import pytest

VALUE = "/proc/sys/net/ipv4/tcp_slow_start_after_idle"
CODE = """
import json, os, sys
sys.path[:0] = {path!r}
from nodetune_host import core
from nodetune_host.executor import DryRun, Executor
from nodetune_host.journal import Journal
home, folder, mode, content = {home!r}, {folder!r}, {mode!r}, {content!r}
changes = [
    {{"change": "value", "path": {value!r}, "value": "0", "checks": ["a"]}},
    {{"change": "value", "path": "/proc/sys/net/ipv4/tcp_mtu_probing", "value": "1", "checks": ["b"]}},
    {{"change": "file", "path": folder + "/zz.conf", "content": content, "checks": ["a"]}},
]
result = core.Result()
core.do(changes, (DryRun if mode == "dry" else Executor)(Journal("run-1", home)), result)
print(json.dumps([open({value!r}).read().strip(), result.problems, os.path.exists(home)]))
"""


@pytest.fixture
def made(tmp_path):
    """made(how) → the value, the problems and whether anything was journaled, in a folder that is mounted read-only or not."""
    command = ["unshare", "--map-root-user", "--net", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make namespaces")
    folder = tmp_path / "sysctl.d"
    folder.mkdir()
    (folder / "zz.conf").write_text("right\n")

    def run(how="true", mode="real", content="new\n"):
        given = {"path": sys.path, "home": str(tmp_path / "state"), "folder": str(folder)}
        code = CODE.format(**given, mode=mode, content=content, value=VALUE)
        script = f'echo 1 > {VALUE} && {how.format(folder)} && exec {sys.executable} -c "$1"'
        done = subprocess.run([*command, "sh", "-c", script, "sh", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


READ_ONLY = "mount --bind {0} {0} && mount -o remount,bind,ro {0}"


@pytest.mark.parametrize("mode", ["real", "dry"])
def test_a_value_whose_file_cannot_be_written_stays(made, mode):
    value, problems, _ = made(READ_ONLY, mode)
    assert value == "1"
    told = [(problem["checks"], problem["message"]) for problem in problems]
    assert told[0][0] == ["a"]
    assert told[0][1].endswith("/sysctl.d/zz.conf cannot be written: read-only file system")
    assert all(checks == ["a"] for checks, _ in told), "the other check has a file that can be written, or none"


def test_a_file_that_is_right_already_need_not_be_written(made):
    assert made(READ_ONLY, content="right\n")[:2] == ["0", []]


def test_a_value_whose_file_can_be_written_is_set(made):
    assert made()[:2] == ["0", []]


def test_an_immutable_folder_is_told_as_such(do, tmp_path):
    folder = tmp_path / "sysctl.d"
    folder.mkdir()
    if os.geteuid() or subprocess.run(["chattr", "+i", folder], capture_output=True).returncode:
        pytest.skip("this file system knows no immutable folder, or the test is not root")
    (tmp_path / "value").write_text("60\n")
    value = {"change": "value", "path": str(tmp_path / "value"), "value": "10"}
    try:
        result = do([value, {"change": "file", "path": f"{folder}/zz.conf", "content": "new\n"}])
    finally:
        subprocess.run(["chattr", "-i", folder], check=True)
    assert (tmp_path / "value").read_text() == "60\n"
    assert "is it immutable? lsattr shows it" in result.problems[0]["message"]
