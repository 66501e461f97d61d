"""What an epilog compares, and which processes it may end."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from nodetune.guard.node import epilog, leftover_processes
from nodetune.guard.node.invocation import Job
from nodetune.onhost import slurm_cgroup
from tests.unit.guard.install import children_of

NOBODY = 65534


def test_growth_is_only_what_is_new_since_a_reading():
    count = {"each": {"GPU0": {"value": 3}, "GPU1": {"value": 0}}}
    more = {"each": {"GPU0": {"value": 5}, "GPU1": {"value": 0}}}
    assert epilog.since(count, more) == {"each": {"GPU0": {"value": 2}, "GPU1": {"value": 0}}}
    assert epilog.since(more, count)["each"]["GPU0"] == {"value": 3}, "it was reset, and counted 3 since"
    links = {"value": {"replay": {"3": 12, "4": 1}}}
    assert epilog.since(links, {"value": {"replay": {"3": 12, "4": 2, "5": 7}}}) == {
        "value": {"replay": {"4": 1, "5": 7}}
    }
    assert epilog.since({"value": [{"xid": 79}]}, {"value": [{"xid": 79}, {"xid": 79}, {"xid": 48}]}) == {
        "value": [{"xid": 79}, {"xid": 48}]
    }
    assert "unread" in epilog.since({"unread": "busy"}, {"value": 3})


def test_only_xids_after_the_first_reading_are_new():
    def xid(number, first, time, count, bdf="0000:3b:00.0"):
        return {"bdf": bdf, "xid": number, "first": first, "time": time, "count": count, "text": ""}

    before = {"value": [xid(79, 1.0, 1.0, 1), xid(45, 2.0, 9.0, 7)]}
    flood = [xid(79, 1.0, 1.0, 1), xid(45, 2.0, 30.0, 11767), xid(95, 29.0, 29.0, 1)]
    assert epilog.since(before, {"value": flood}) == {"value": [xid(45, 2.0, 30.0, 11760), xid(95, 29.0, 29.0, 1)]}
    lost = [xid(45, 5.0, 9.0, 3)]
    assert epilog.since(before, {"value": lost}) == {"value": []}, "the log lost the first ones"
    earlier = {"value": [{"bdf": "0000:3b:00.0", "xid": 79, "time": 1.0, "text": ""}]}
    assert epilog.since(earlier, {"value": flood[:2]}) == {"value": flood[1:2]}, "a snapshot of an earlier version"


@pytest.fixture
def left():
    """left(user): a process of this user that a job left behind."""
    if os.geteuid():
        pytest.skip("starting processes of other users takes root")
    started = []

    def start(user, **environment):
        started.append(subprocess.Popen(["sleep", "60"], user=user, env=environment))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()


def test_a_process_of_the_jobs_user_is_ended(left):
    process = left(NOBODY)
    assert leftover_processes.end(process.pid, Job({"SLURM_JOB_ID": "7"}), NOBODY)
    assert process.wait(30) == -9


@pytest.mark.parametrize(("owner", "uid", "started_by"), [(0, 0, "7"), (0, NOBODY, "7"), (NOBODY, None, "7")])
def test_no_process_of_root_or_of_an_unknown_user_is_ended(left, owner, uid, started_by):
    process = left(owner, SLURM_JOB_ID=started_by)
    assert not leftover_processes.end(process.pid, Job({"SLURM_JOB_ID": "7"}), uid)
    assert process.poll() is None


@pytest.fixture
def stepd():
    """stepd(name, code, user): a process called as the slurmstepd of a job's step is; it runs code and waits."""
    if os.geteuid():
        pytest.skip("starting processes of other users takes root")
    started, folder = [], Path(tempfile.mkdtemp())
    folder.chmod(0o755)  # tmp_path is for nobody else

    def start(called, program="slurmstepd", code="", user=0):
        path = folder / program
        path.exists() or shutil.copy("/bin/dash", path)
        words = [called, "-c", f"{code}\necho up; read line"]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(words, executable=path, stdin=pipe, stdout=pipe, user=user, text=True))
        assert started[-1].stdout.readline() == "up\n"
        return started[-1]

    yield start
    for each in started:
        for child in children_of(each.pid):
            os.kill(child, signal.SIGKILL)
        each.kill()
        each.communicate()
    shutil.rmtree(folder)


def test_a_variable_hides_no_process_of_the_jobs_user(left):
    process = left(NOBODY, SLURM_JOB_ID="999999")
    assert not leftover_processes._of_another_job({"pid": process.pid}, Job({"SLURM_JOB_ID": "7"}))
    assert leftover_processes.end(process.pid, Job({"SLURM_JOB_ID": "7"}), NOBODY)


def test_a_process_that_names_a_job_that_runs_here_is_spared(left, stepd):
    process = left(NOBODY, SLURM_JOB_ID="8")
    stepd("slurmstepd: [8.batch]")
    assert not leftover_processes.end(process.pid, Job({"SLURM_JOB_ID": "7"}), NOBODY)
    assert process.poll() is None


@pytest.mark.parametrize(
    ("program", "user", "job"), [("slurmstepd", 0, "8"), ("sleep", 0, ""), ("slurmstepd", NOBODY, "")]
)
def test_a_slurmstepd_is_roots_and_runs_slurms_program(stepd, program, user, job):
    above = stepd("slurmstepd: [8.0]", program, "sleep 300 > /dev/null &", user)
    (child,) = children_of(above.pid)
    assert leftover_processes._job_of(child) == job


@pytest.mark.parametrize(
    ("cgroup", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_8/step_0/user/task_0", "8"),
        ("0::/system.slice/n01_slurmstepd.scope/job_8/step_batch", "8"),
        ("4:memory:/slurm/uid_1000/job_8/step_0\n1:cpu:/", "8"),
        ("0::/user.slice/user-1000.slice/user@1000.service/system.slice/slurmstepd.scope/job_8", None),
        ("0::/system.slice/slurmstepd.scope/job_8/step_0/user/slurmstepd.scope/job_9/step_0", "8"),
        ("0::/system.slice/foo.service/job_8", None),
        ("0::/system.slice/slurmstepd.scope/system", None),
        ("0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/slurmstepd.scope/job_9", "sEKNKTV3WPV500"),
        ("0::/system.slice/n01_slurmstepd.scope/sEKNKTV3WPV500", "sEKNKTV3WPV500"),
        ("0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/sEKNKTV3WPV500", None),
    ],
)
def test_a_job_has_a_cgroup_where_slurm_makes_it(cgroup, job):
    assert slurm_cgroup.job(cgroup, {}.get) == (job or "")


OURS, OTHER = "sEKNKTV3WPV500", "s5K1KKYAYG5D00"
IN_26_05 = {"SLURM_JOB_ID": "7", "SLURM_JOB_SLUID": OURS}


@pytest.fixture
def into():
    """into(pid, "SLUID/step_0/user/task_0"): move a process there, in a cgroup v2 laid out as Slurm 26.05 does."""
    mount = next((Path(each) for each in slurm_cgroup.MOUNTS if Path(each, "cgroup.controllers").exists()), None)
    if os.geteuid() or mount is None or not os.access(mount / "cgroup.procs", os.W_OK):
        pytest.skip("making cgroups takes root and cgroup v2")
    scope = mount / f"nodetune-{os.getpid()}_slurmstepd.scope"
    home = mount / re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)[1]

    def move(pid, path):
        (scope / path).mkdir(parents=True, exist_ok=True)
        (scope / path / "cgroup.procs").write_text(str(pid))

    yield move
    for folder, _, _ in os.walk(scope, topdown=False):
        for pid in Path(folder, "cgroup.procs").read_text().split():
            (home / "cgroup.procs").write_text(pid)
        os.rmdir(folder)


@pytest.mark.parametrize(
    ("cgroup", "title", "environment", "ended"),
    [
        (OURS, "", IN_26_05, True),  # its slurmstepd ended before it
        (OURS, "7.extern", {"SLURM_JOB_ID": "7"}, True),
        (OURS, "", {"SLURM_JOB_ID": "7"}, False),  # in doubt
        (OTHER, "8.0 stepmgr", IN_26_05, False),
        (OTHER, "", IN_26_05, False),
        ("s0000000000000", "7.0", {"SLURM_JOB_ID": "7"}, True),
        ("job_8", "", IN_26_05, False),
        ("job_7", "", IN_26_05, True),
    ],
)
def test_a_process_in_a_cgroup_of_slurm_26_05_is_ended_only_if_it_is_the_jobs(
    left, stepd, into, cgroup, title, environment, ended
):
    process = left(NOBODY)
    into(process.pid, f"{cgroup}/step_0/user/task_0")
    if title:
        into(stepd(f"slurmstepd: [{title}]").pid, f"{cgroup}/step_0/slurm")
    job = Job(environment)
    assert leftover_processes._of_another_job({"pid": process.pid}, job) == (not ended)
    assert leftover_processes.end(process.pid, job, NOBODY) == ended
    assert process.wait(30) == -9 if ended else process.poll() is None


def test_a_cgroup_that_two_jobs_share_is_in_doubt(left, stepd, into):
    process = left(NOBODY)
    into(process.pid, "s0000000000000/step_0/user/task_0")
    into(stepd("slurmstepd: [7.0]").pid, "s0000000000000/step_0/slurm")
    into(stepd("slurmstepd: [8.0]").pid, "s0000000000000/step_1/slurm")
    assert not leftover_processes.end(process.pid, Job(IN_26_05), NOBODY)


def test_only_a_slurmstepd_in_slurms_part_of_a_cgroup_names_its_job(left, stepd, into):
    process = left(NOBODY)
    into(process.pid, f"{OTHER}/step_0/user/task_0")
    into(stepd("slurmstepd: [7.0]", user=NOBODY).pid, f"{OTHER}/step_0/user/task_1")
    into(stepd("slurmstepd: [7.0]", "sleep").pid, f"{OTHER}/step_1/slurm")
    assert leftover_processes._job_of(process.pid) == OTHER
