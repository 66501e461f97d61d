"""The script that Slurm calls, as a real script under both shells: nothing but a failing check with its record holds a job."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.guard import install

SHELLS = [shell for shell in (("dash",), ("bash", "--posix")) if shutil.which(shell[0])]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs prologs and epilogs as root")


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def shell(request):
    return (shutil.which(request.param[0]), *request.param[1:])


@pytest.fixture
def instead(bare):
    """A shell script that is in the interpreter's place: what is tested is what the entry makes of its end."""

    def program(text, **values):
        path = bare.folder / "interpreter"
        path.write_text(
            f'#!/bin/sh\nrun={bare.run_folder}\nfor word; do nonce=$word; done\nmkdir -p "$run/failed"\n{text}\n'
        )
        path.chmod(0o755)
        bare.write_entry(python=str(path), **values)
        return bare

    return program


RECORD = """printf '{"nonce": "%s", "mode": "%s", "job": "7"}\\n' "$nonce" enforce > "$run/failed/7.json"; exit 1"""


def test_a_job_is_held_by_exit_1_with_the_record_of_this_run(instead, shell):
    assert instead(RECORD).call(shell=shell) == (1, "")


@pytest.mark.parametrize(
    "text",
    [
        "exit 1",
        RECORD.replace('"$nonce" enforce', '"$nonce" observe'),
        RECORD.replace('"$nonce" enforce', "of-an-earlier-run enforce"),
        RECORD.replace("7.json", "8.json"),
        RECORD.replace("exit 1", "exit 2"),
        RECORD.replace("exit 1", "exit 120"),
        RECORD.replace("exit 1", "kill -9 $$"),
        RECORD.replace("exit 1", "kill -SEGV $$"),
        ': > "$run/failed/7.json"; exit 1',
        'mkdir "$run/failed/7.json"; exit 1',
        "exit 127",
    ],
)
def test_any_other_end_of_the_program_is_inconclusive(instead, shell, text):
    node = instead(text)
    ended = node.call(shell=shell)
    assert ended.code == 0
    assert "inconclusive: " in ended.said
    assert node.inconclusive() == 1


@pytest.mark.parametrize("job", [None, "", "8", "../7", "7 7", "-7"])
def test_a_record_of_another_job_holds_none(instead, shell, job):
    assert instead(RECORD).call(shell=shell, job=job).code == 0


@pytest.mark.parametrize("python", ["/nonexistent/python3", "/dev/null", "/", "/etc/passwd", ""])
def test_a_missing_interpreter_holds_no_job(bare, shell, python):
    bare.write_entry(python=python)
    ended = bare.call(shell=shell)
    assert ended.code == 0
    assert "inconclusive: it ended with 12" in ended.said
    assert bare.inconclusive() == 1


def test_a_program_that_is_gone_holds_no_job(bare, shell, tmp_path):
    bare.write_entry(program=str(tmp_path / "none"))
    assert bare.call(shell=shell).code == 0
    assert bare.inconclusive() == 1


@pytest.mark.parametrize(
    "file",
    ["guard/node/prolog.py", "guard/node/main.py", "guard/node/gating_checks.py", "probe/main.py", "api/model.py"],
)
@pytest.mark.parametrize("content", [None, "import nothing_of_that_name\n", "def broken(:\n", "raise SystemExit(1)\n"])
def test_a_missing_or_broken_program_file_holds_no_job(bare, program, tmp_path, file, content):
    own = tmp_path / "program"
    shutil.copytree(program, own, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (own / "nodetune" / file).unlink()
    if content:
        (own / "nodetune" / file).write_text(content)
    bare.write_entry(program=str(own))
    ended = bare.call()
    assert ended.code == 0
    assert "Traceback" not in ended.said
    assert ended.said.count("inconclusive: ") == 1
    assert bare.inconclusive() == 1


def test_a_program_that_never_ends_is_ended_and_holds_no_job(instead, shell):
    ended = instead("trap '' TERM; sleep 1000 & wait; sleep 1000", seconds=1).call(shell=shell)
    assert ended.code == 0
    assert "inconclusive: " in ended.said


@pytest.mark.parametrize("content", [None, "", "{", "[]", "null"])
def test_a_policy_that_cannot_be_used_holds_no_job(bare, shell, content):
    bare.policy.unlink() if content is None else bare.policy.write_text(content)
    ended = bare.call(shell=shell)
    assert ended.code == 0
    assert f"inconclusive: {bare.policy}: " in ended.said
    assert ended.said.count("\n") == 1
    assert bare.inconclusive() == 1


def test_a_policy_that_others_may_write_holds_no_job(bare):
    bare.policy.chmod(0o666)
    assert "must belong to root" in bare.call().said
    assert bare.inconclusive() == 1


def test_a_policy_with_a_check_of_another_version_names_it(bare):
    bare.write_policy(lambda data: data["checks"][0].update(id="gpu-on-fire"))
    ended = bare.call()
    assert ended.code == 0
    assert "the policy names the check gpu-on-fire, which this version does not have" in ended.said


def test_each_file_of_the_kill_switch_lets_every_job_run(instead, shell):
    node = instead(RECORD)
    node.off.symlink_to("/nonexistent")
    assert node.call(shell=shell) == (0, f"nodetune: switched off by {node.off}\n")


def test_the_count_continues_whatever_its_file_holds(instead, shell):
    node = instead("exit 9")
    node.call(shell=shell)
    node.call(shell=shell)
    assert node.read("blind") == "2 times since boot, last in the prolog of job 7: it ended with 9\n"
    for content in ("", "\n", "08 x", "x y", "9999999999999999999", "$(reboot)", "-1"):
        (node.run_folder / "blind").write_text(content)
        assert node.call(shell=shell).code == 0
        assert node.inconclusive() == 1


@pytest.mark.parametrize("environment", [{}, {"LC_ALL": "C"}, {"LANG": "xx_YY.latin9", "IFS": "0", "PATH": "/nowhere"}])
def test_without_a_word_from_slurm_nothing_is_held(bare, shell, environment):
    assert bare.call(shell=shell, environment=environment) == (0, "nodetune: pass: no check applies to this job\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-", "> /dev/full"])
@pytest.mark.parametrize("gpus", [None, "0"])
def test_closed_or_full_standard_streams_change_nothing(bare, closed, gpus):
    command = [*bare.enter, "sh", "-c", f'"$0" {closed}', bare.prolog]
    done = subprocess.run(command, env=bare.environment(gpus=gpus), check=False)
    assert done.returncode == 0
    assert bare.read("heartbeat").split()[2] == ("pass" if gpus is None else "inconclusive")


def test_it_is_known_by_its_name_or_by_its_argument(instead):
    node = instead('echo "$*"')
    (node.folder / "healthcheck").symlink_to(node.prolog)
    assert " health --policy" in node.call("healthcheck").said
    assert " epilog --policy" in node.call("epilog").said
    assert " prolog --policy" in node.call().said
    by_name = subprocess.run([node.folder / "healthcheck"], env={}, capture_output=True, text=True, check=False)
    assert " health --policy" in by_name.stdout


def test_a_link_of_another_name_goes_by_what_slurm_calls_it(instead):
    node = instead('echo "$*"')
    other = node.folder / "90-nodetune"
    other.symlink_to(node.prolog)
    for context, what in (("prolog_slurmd", "prolog"), ("epilog_slurmd", "epilog")):
        environment = {"SLURM_SCRIPT_CONTEXT": context}
        done = subprocess.run([other], env=environment, capture_output=True, text=True, check=False)
        assert f" {what} --policy" in done.stdout


def test_one_that_does_not_know_its_request_is_inconclusive(instead, shell):
    node = instead(RECORD)
    ended = node.call("reboot", shell=shell)
    assert (ended.code, "is not told which it is" in ended.said, node.inconclusive()) == (0, True, 1)


@pytest.mark.parametrize("text", ["exit 1", "exit 9", "yes | head -c 1000000", "exit 3"])
def test_nobody_who_listens_is_no_reason_to_hold_a_job(instead, shell, text):
    node = instead(text)
    command = ["bash", "-c", '"$@" | exec true; exit ${PIPESTATUS[0]}', "bash", *shell, node.prolog]
    for _ in range(5):
        assert subprocess.run(command, env=node.environment(), stderr=subprocess.DEVNULL, check=False).returncode == 0


def test_a_truncated_entry_script_holds_no_job(instead):
    node = instead("exit 1")
    whole = node.prolog.read_text()
    head = whole.index("trap ") + len(whole[whole.index("trap ") :].partition("\n")[0]) + 1
    ends = range(head, len(whole), 37)
    assert len(ends) > 5
    for end in ends:
        node.prolog.write_text(whole[:end])
        assert node.call().code == 0, whole[:end]


def test_odd_signs_in_paths_are_only_signs(bare, program, tmp_path):
    odd = tmp_path / 'it\'s $(odd) "here"'
    node = install.Node(odd, program)
    assert node.call(gpus=None) == (0, "nodetune: pass: no check applies to this job\n")


def test_the_last_state_is_shown(instead, bare):
    bare.call(gpus=None)
    said = bare.call("show").said
    assert ", job 7, pass\n" in said
    assert "inconclusive: never since boot" in said


# A mount namespace of its own: /run that is full, or read-only


def in_namespace(*lines):
    return ("unshare", "--mount", "sh", "-c", "; ".join([*lines, 'exec "$@"']), "sh")


def can_mount():
    return (
        subprocess.run([*in_namespace("mount -t tmpfs none /mnt"), "true"], capture_output=True, check=False).returncode
        == 0
    )


needs_mount = pytest.mark.skipif(not can_mount(), reason="no mounts in a namespace of its own here")


@needs_mount
@pytest.mark.parametrize("how", ["full", "ro"])
def test_a_full_or_read_only_run_folder_holds_no_job(node, how):
    node.run_folder.mkdir()
    node.control("lost@0=1")
    fill = f"dd if=/dev/zero of={node.run_folder}/fill bs=4096 2> /dev/null"
    change = fill if how == "full" else f"mount -o remount,ro {node.run_folder}"
    ended = node.call(before=in_namespace(f"mount -t tmpfs -o size=16k none {node.run_folder}", change))
    assert ended.code == 0
    assert "the job runs" in ended.said or "inconclusive: " in ended.said
    assert "Traceback" not in ended.said


@needs_mount
def test_without_proc_there_is_no_nonce_and_no_job_is_held(instead):
    assert instead(RECORD).call(before=in_namespace("mount -t tmpfs none /proc")).code == 0


def limited(*words):
    """A shell in between that sets limits and then runs what follows."""
    return ("sh", "-c", f'{" && ".join(words)} && exec "$@"', "sh")


def test_where_no_file_may_grow_the_run_is_counted(instead, shell):
    node = instead("exit 9")
    for times in (1, 2):
        assert node.call(shell=shell, before=limited("ulimit -f 0")).code == 0
        assert node.inconclusive() == times


def test_the_next_run_with_room_counts_what_could_not_be(instead, shell):
    node = instead("exit 9")
    node.call(shell=shell)
    node.call(shell=shell, before=limited("ulimit -f 0"))
    node.write_entry()
    node.call(shell=shell, gpus=None)
    assert os.listdir(node.run_folder / "uncounted") == []
    assert node.inconclusive() == 2


@pytest.fixture
def no_processes(tmp_path):
    """A cgroup that has room for one process: the shell."""
    root = next((Path(root) for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified") if os.path.isdir(root)), None)
    folder = (root or Path("/sys/fs/cgroup")) / f"nodetune-{os.getpid()}-{time.monotonic_ns()}"
    try:
        folder.mkdir()
        (folder / "pids.max").write_text("1")
    except OSError:
        pytest.skip("no cgroups for processes here")
    yield limited(f"echo $$ > {folder}/cgroup.procs")
    folder.rmdir()


def test_where_no_process_can_be_started_the_run_is_counted(instead, shell, no_processes):
    node = instead("exit 1")
    node.run_folder.mkdir()
    (node.run_folder / "uncounted").mkdir()
    assert node.call(shell=shell, before=no_processes) == (0, ""), "bash would say that it tries again, for 15 seconds"
    assert node.inconclusive() == 1


def full_pipe():
    """Both ends of a pipe that takes nothing any more."""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(ends[1], b"x" * 4096)
    os.set_blocking(ends[1], True)
    return ends


@pytest.mark.parametrize(("text", "off"), [("exit 9", False), ("exit 9", True), (None, False)])
def test_a_full_pipe_holds_no_shell_and_no_program(instead, shell, text, off):
    node = instead(text or "")
    if text is None:
        node.write_entry()
        node.policy.unlink()
    if off:
        node.off.touch()
    ends = full_pipe()
    command = [*shell, node.prolog]
    environment = node.environment(gpus=None)
    done = subprocess.run(command, env=environment, stdout=ends[1], stderr=ends[1], timeout=60, check=False)
    for end in ends:
        os.close(end)
    assert done.returncode == 0
    assert node.inconclusive() == (0 if off else 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM, signal.SIGXCPU])
def test_a_signal_to_the_shell_holds_no_job_and_is_counted(instead, shell, number):
    node = instead('echo up > "$run/up"; until [ -e "$run/go" ]; do sleep 0.05; done')
    ours = signal.signal(number, signal.SIG_DFL)  # a shell traps no signal that is ignored when it starts (nohup)
    child = node.start(shell=shell)
    signal.signal(number, ours)
    while not (node.run_folder / "up").exists():
        assert child.poll() is None
        time.sleep(0.01)
    os.kill(child.pid, number)
    (node.run_folder / "go").touch()
    child.communicate(timeout=install.LATEST)
    assert child.returncode == 0
    assert node.inconclusive() == 1
