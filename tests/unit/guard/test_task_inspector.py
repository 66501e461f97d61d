"""NCCL's Inspector for tasks: the task prolog sets its variables where the policy says so and the plugin is there."""

import json
import os

import pytest

from nodetune.config import profile
from nodetune.foundation import schemas
from nodetune.guard.deploy import policy as policies
from nodetune.guard.node import taskprolog

JOB = {"SLURM_JOB_ID": "812"}


@pytest.fixture
def policy(tmp_path, monkeypatch):
    """policy(plugin=…, folder=…) → the path of a policy that root wrote; the library exists as tmp_path/lib.so."""
    (tmp_path / "lib.so").write_bytes(b"")
    mode, real = [0o100644, 0], os.stat

    def stat(path, **options):
        if str(path).endswith("guard.json"):
            return os.stat_result([mode[0], 0, 0, 1, mode[1], 0, 9, 0, 0, 0])
        return real(path, **options)

    monkeypatch.setattr(taskprolog.os, "stat", stat)

    def make(given="both", permissions=0o100644, uid=0):
        mode[:] = permissions, uid
        wanted = {"plugin": str(tmp_path / "lib.so"), "folder": str(tmp_path / "shared")}
        (tmp_path / "shared").mkdir(exist_ok=True)
        file = tmp_path / "guard.json"
        file.write_text(json.dumps({"environment": {}, "inspector": wanted if given == "both" else given}))
        return str(file)

    return make


def test_tasks_get_the_variables_and_a_folder_for_their_job(policy, tmp_path):
    assert taskprolog.inspector(JOB, policy()) == {
        "NCCL_PROFILER_PLUGIN": str(tmp_path / "lib.so"),
        "NCCL_INSPECTOR_ENABLE": "1",
        "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "500",
        "NCCL_INSPECTOR_DUMP_DIR": str(tmp_path / "shared" / "812"),
    }


def test_the_folder_is_there_before_the_ranks_start_and_each_task_may_find_it(policy, tmp_path):
    first = taskprolog.inspector(JOB, policy())
    assert (tmp_path / "shared" / "812").is_dir()
    assert taskprolog.inspector(JOB, policy()) == first


def test_nothing_is_set_where_the_folder_cannot_be_created(policy, tmp_path):
    path = policy()
    (tmp_path / "shared").rmdir()
    assert taskprolog.inspector(JOB, path) == {}


def test_what_the_user_has_set_stays(policy, tmp_path):
    found = taskprolog.inspector({**JOB, "NCCL_INSPECTOR_DUMP_DIR": "/mine"}, policy())
    assert "NCCL_INSPECTOR_DUMP_DIR" not in found
    assert not (tmp_path / "shared" / "812").exists()
    assert found["NCCL_INSPECTOR_ENABLE"] == "1"


def test_a_job_that_another_job_has_submitted_gets_its_own_folder(policy, tmp_path):
    first = taskprolog.inspector(JOB, policy())
    second = taskprolog.inspector({**first, "SLURM_JOB_ID": "900"}, policy())
    assert second == {**first, "NCCL_INSPECTOR_DUMP_DIR": str(tmp_path / "shared" / "900")}
    assert (tmp_path / "shared" / "900").is_dir()


@pytest.mark.parametrize("own", ["NCCL_PROFILER_PLUGIN=mine\n", ""])
def test_a_profiler_of_the_user_gets_none_of_them(policy, tmp_path, own):
    (tmp_path / ".nccl.conf").write_text(own)
    environment = {**JOB, "HOME": str(tmp_path)} if own else {**JOB, "NCCL_PROFILER_PLUGIN": ""}
    assert taskprolog.inspector(environment, policy()) == {}


@pytest.mark.parametrize(
    "given",
    [
        {},
        None,
        [],
        {"plugin": "/none.so", "folder": "/shared"},
        {"plugin": "lib.so", "folder": "/shared"},
        {"folder": "/shared"},
        {"plugin": 5, "folder": "/shared"},
        {"plugin": "/a\nb", "folder": "/shared"},
    ],
)
def test_nothing_is_set_unless_the_policy_names_a_library_that_exists(policy, given):
    assert taskprolog.inspector(JOB, policy(given)) == {}


@pytest.mark.parametrize("how", [{"uid": 1000}, {"permissions": 0o100666}])
def test_a_policy_that_others_can_write_sets_nothing(policy, how):
    assert taskprolog.inspector(JOB, policy(**how)) == {}


@pytest.mark.parametrize("environment", [{}, {"SLURM_JOB_ID": "../x"}])
def test_without_a_job_nothing_is_set(policy, environment):
    assert taskprolog.inspector(environment, policy()) == {}


def test_the_lines_come_after_those_for_threads(policy, monkeypatch):
    printed = []
    monkeypatch.setattr(taskprolog.os, "write", lambda _handle, text: printed.append(text.decode()))
    monkeypatch.setattr(taskprolog.os, "environ", dict(JOB))
    taskprolog.main([policy()])
    assert "export OMP_NUM_THREADS=" in printed[0]
    assert printed[1].startswith("export NCCL_PROFILER_PLUGIN=")


def made(**settings):
    return policies.checked(profile.resolve(profile.named(["training"]), None), "n01", settings)


def test_it_is_off_unless_a_site_sets_it():
    assert made()["inspector"] == {}
    assert list(schemas.violations("guard-policy", made())) == []


def test_library_and_folder_are_taken_up():
    given = {"plugin": "/opt/nccl/libnccl-profiler-inspector.so", "folder": "/shared/inspector/"}
    data = made(inspector=given)
    assert data["inspector"] == {**given, "folder": "/shared/inspector"}
    assert list(schemas.violations("guard-policy", data)) == []


@pytest.mark.parametrize(
    "wrong", [{"plugin": "/a"}, {"plugin": "a", "folder": "/b"}, {"plugin": "/a", "folder": "/b\n"}]
)
def test_a_setting_that_cannot_be_is_refused(wrong):
    with pytest.raises(policies.SettingError, match="inspector"):
        made(inspector=wrong)


def test_an_older_policy_without_the_setting_is_no_difference():
    before = made()
    del before["inspector"]
    assert "inspector" not in [name for name, *_ in policies.compare(before, made()).settings]
