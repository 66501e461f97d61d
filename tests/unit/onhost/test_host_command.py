"""A command on the host that outlives its session: the program runs here, in this machine's own namespaces."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodetune.onhost import host_command

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the program enters namespaces")
SOURCE = Path(host_command.__file__).read_text()


@pytest.fixture
def session(tmp_path):
    """Run one session of the program: (exit status, output, errors)."""

    def run(steps, data=b"", first="/proc/self"):
        code = f"{SOURCE}\nWORK, FIRST = {str(tmp_path)!r}, {first!r}\n{steps}"
        done = subprocess.run([sys.executable, "-I", "-S", "-c", code], input=data, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    return run


def start(command, size=0, name="a"):
    return f"start({name!r}, {command!r}, {size})\n"


def follow(out=0, errors=0, seconds=60, name="a"):
    return f"sys.exit(follow({name!r}, {out}, {errors}, {seconds}))"


def test_a_command_gets_its_input_and_its_result_is_told(session):
    command = "wc -c; echo no >&2; exit 7"
    code, out, errors = session(start(command, 300_000) + follow(), b"x" * 300_000)
    assert (code, out.strip(), errors) == (host_command.ENDED, b"300000", b"no\n\n7\n")


def test_the_next_session_continues_where_the_last_one_was(session, tmp_path):
    os.mkfifo(tmp_path / "gate")
    command = f"echo one; cat {tmp_path}/gate; echo two"
    code, out, _ = session(start(command) + "time.sleep(0.1)\n" + follow(seconds=0))
    assert (code, b"one\n".startswith(out)) == (host_command.NOT_YET, True)
    (tmp_path / "gate").write_text("")
    code, more, _ = session(follow(out=len(out)))
    assert (code, out + more) == (host_command.ENDED, b"one\ntwo\n")


def test_a_command_is_started_once(session, tmp_path):
    steps = start(f"echo x >> {tmp_path}/times") + follow()
    assert session(steps)[0] == session(steps)[0] == host_command.ENDED
    assert (tmp_path / "times").read_text() == "x\n"


def test_nothing_starts_before_its_whole_input_is_there(session, tmp_path):
    assert session(start(f"touch {tmp_path}/started", 10) + follow(), b"half")[0] == host_command.UNKNOWN
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_is_lost_is_told_so(session, tmp_path):
    assert session(follow(name="never"))[0] == host_command.UNKNOWN
    session(start("exit 3") + follow())
    (tmp_path / "a/status").unlink()
    assert session(follow())[0] == host_command.UNKNOWN


def test_a_pod_that_may_not_enter_the_host_starts_nothing(session, tmp_path):
    code, _, errors = session(start(f"touch {tmp_path}/started") + follow(), first=str(tmp_path / "none"))
    told = "nodetune: the pod cannot enter the host (no such file or directory): it must be privileged, with hostPID\n"
    assert (code, errors.decode()) == (1, told)
    assert not (tmp_path / "started").exists()


def test_a_command_has_the_surroundings_of_a_login(session, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    _, out, _ = session(
        start("pwd; echo $HOME $SECRET; cat /proc/self/oom_score_adj; ls /proc/self/fd | wc -l") + follow()
    )
    assert out.split() == [b"/", b"/root", b"0", b"4"], "standard handles, and the folder that ls reads"
