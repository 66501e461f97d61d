"""Commands of the host: bounded in time and output, and nothing of them left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodetune.onhost import command


def shell(text, seconds=60, **more):
    return command.run(["/bin/sh", "-c", text], seconds, **more)


def sleeping(marker):
    """The processes that sleep for this time, which is another one in each test."""
    done = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.endswith(f"sleep {marker}") and line[0] not in "ZX"]


def gone(marker):
    end = time.monotonic() + 30
    while sleeping(marker) and time.monotonic() < end:
        time.sleep(0.01)
    return not sleeping(marker)


def test_a_command_gives_its_output():
    assert shell("echo one; echo two >&2") == "one\n"


def test_a_command_that_fails_is_told_by_its_last_complaint():
    with pytest.raises(command.CommandError, match=r"^sh failed \(3\): it broke$"):
        shell("echo fine; echo first >&2; echo it broke >&2; exit 3")


def test_a_command_that_is_killed_is_told_by_the_signal():
    with pytest.raises(command.CommandError, match=r"^sh failed \(signal SIGKILL\): no message$"):
        shell("kill -9 $$")


def test_a_command_that_is_not_there_is_told():
    with pytest.raises(command.CommandError, match="^missing cannot be run: No such file or directory$"):
        command.run(["/nonexistent/missing"], 60)


def test_a_command_over_its_time_is_killed_with_what_it_started():
    with pytest.raises(command.CommandError, match="^sh did not finish within 0.3 s$"):
        shell("sleep 301.125 & sleep 301.125", 0.3)
    assert gone("301.125")


def test_a_command_that_closes_its_output_and_stays_is_killed():
    with pytest.raises(command.CommandError, match="^sh closed its output but did not finish within 0.3 s$"):
        shell("exec >&- 2>&-; exec sleep 301.25", 0.3)
    assert gone("301.25")


def test_an_output_left_open_elsewhere_is_not_waited_for():
    with pytest.raises(command.CommandError, match="^sh did not finish within 0.5 s$"):
        shell("sleep 301.375 & exit 0", 0.5)
    assert gone("301.375")


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_command_that_prints_without_end_is_killed(stream):
    with pytest.raises(command.CommandError, match="^sh printed more than 8 MiB$"):
        shell(f"exec yes{stream}")


def test_what_a_command_left_running_on_purpose_continues():
    pid = int(shell("sleep 301.5 >/dev/null 2>&1 & echo $!"))
    assert sleeping("301.5")
    os.kill(pid, signal.SIGKILL)


def test_a_command_runs_in_the_c_locale_without_our_environment(monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    found = dict(line.split("=", 1) for line in shell("exec env").splitlines())
    assert found["LC_ALL"] == "C"
    assert found["PATH"] == command.PATH
    assert "SECRET" not in found


def test_a_tied_command_dies_with_who_started_it():
    code = (
        "import time\nfrom nodetune.onhost import command\n"
        "command.start(['/bin/sleep', '301.625'], tied=True)\nprint('up', flush=True)\ntime.sleep(300)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert gone("301.625")


def test_a_command_is_found_in_the_folders_of_the_system_alone(tmp_path, monkeypatch):
    (tmp_path / "sbin/folder").mkdir(parents=True)
    (tmp_path / "sbin/tool").write_text("")
    (tmp_path / "sbin/tool").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "sbin"))
    assert command.find("tool") is None
    assert command.find("tool", root=str(tmp_path)) == "/sbin/tool"
    assert command.find("folder", root=str(tmp_path)) is None
    assert command.find("tool", path=f":{tmp_path}/sbin") == f"{tmp_path}/sbin/tool"


def test_importing_it_does_not_import_subprocess():
    code = "import sys; from nodetune.onhost import command; sys.exit('subprocess' in sys.modules)"
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-S", "-c", code], cwd=root, check=False).returncode == 0


def test_the_lines_of_a_command_come_until_its_time_is_over():
    endless = "echo one; echo two; exec sleep 301.375"
    came = list(command.lines(["/bin/sh", "-c", endless], 0.5))
    assert came == ["one", "two"][: len(came)]
    assert gone("301.375")
    assert list(command.lines(["/bin/sh", "-c", "seq 99999; echo no >&2; exit 3"], 60))[-1] == "99999"
