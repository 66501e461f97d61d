"""The lock file: read, refused, merged, written; and what hosts say they would get."""

import json

import pytest
import yaml

from nodetune.located import BadFile
from nodetune.provision import ask
from nodetune.provision import lock as locks
from nodetune.provision.ask import Answer
from nodetune.provision.lock import Versions
from tests.documents import valid
from tests.provisioning import DRIVER, NEWER, lock, locked

HEAD = "schema: nodetune.lock/1\nsystems:\n  debian-12-x86_64:\n    driver: 580.159.04\n    packages:\n"


def test_what_was_written_is_read_again(tmp_path):
    made = {**lock(), "rhel-9-aarch64": Versions("", {"libnccl": "2.28.9-1+cuda13.0", "dcgm": "1:4.4.2-1"})}
    locks.write(tmp_path / "v.lock", made)
    assert locks.read(tmp_path / "v.lock") == made
    assert [each.name for each in tmp_path.iterdir()] == ["v.lock"]


def test_the_file_keeps_to_its_published_schema():
    valid("lock", json.dumps(yaml.safe_load(locks.text(lock()))))


def test_a_lock_that_was_refused_leaves_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "v.lock"
    locks.write(path, lock())
    before = path.read_text()
    with pytest.raises(BadFile):
        locks.check(locked(**{"nvidia-fabricmanager": "580.95.05-1"}), "debian-12-x86_64")
    assert path.read_text() == before


@pytest.mark.parametrize(
    "package",
    ["nvidia-fabricmanager", "nvidia-fabric-manager", "nvidia-fabricmanager-570", "libnvidia-nscq", "nvidia-imex",
     "nvidia-persistenced", "kmod-nvidia-open-dkms", "nvidia-dkms-580-open", "nvidia-driver-cuda", "libcuda1"],
)  # fmt: skip
def test_a_lock_in_which_the_driver_and_what_must_equal_it_differ_is_refused_with_its_line(tmp_path, package):
    path = tmp_path / "v.lock"
    path.write_text(HEAD + f'      libnccl2: "2.28-1"\n      {package}: "3:580.95.05-1.el9"\n')
    with pytest.raises(BadFile) as told:
        locks.read(path)
    assert str(told.value).startswith(f"{path} line 7: {package} is 3:580.95.05-1.el9 and the driver 580.159.04")


@pytest.mark.parametrize(
    "package", ["nvlsm", "libnvidia-container1", "nvidia-container-toolkit", "nvidia-driver-pinning-580", "libnccl2"]
)
def test_what_has_versions_of_its_own_may_differ(tmp_path, package):
    path = tmp_path / "v.lock"
    path.write_text(HEAD + f'      {package}: "2025.06.11-1"\n')
    assert locks.read(path)["debian-12-x86_64"].packages == {package: "2025.06.11-1"}


def test_an_epoch_and_a_release_are_no_difference(tmp_path):
    path = tmp_path / "v.lock"
    path.write_text(HEAD + '      nvidia-driver-cuda: "3:580.159.04-1.el9"\n      nvidia-imex: 580.159.04-1\n')
    assert locks.read(path)["debian-12-x86_64"].driver == DRIVER


WRONG = {
    "systems: {}\n": "line 1: no lock file of this version",
    "schema: nodetune.lock/1\nsystems: []\n": "line 2: systems wants a mapping",
    "schema: nodetune.lock/1\nsystem: {}\n": "line 2: a lock file has schema and systems, and no 'system'",
    "schema: nodetune.lock/1\nsystems:\n  debian: {}\n": "line 3: 'debian' is no system",
    "schema: nodetune.lock/1\nsystems:\n  rhel-9-x86_64:\n    driver: 580.15\n": "line 4: driver is 580.15 and no version",
    HEAD + "      a: 1.10\n": "line 6: the version of a is 1.1: write it in quotes",
    HEAD + "      a: '1 2'\n": "line 6: a has no version of the form",
    HEAD + "      'a b': '1'\n": "line 6: 'a b' is no package's name",
    HEAD.replace("    driver: 580.159.04\n", "") + "      libcuda1: '580.159.04-1'\n": "and no driver: is named",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_in_one_line_with_file_and_line(tmp_path, text):
    path = tmp_path / "v.lock"
    path.write_text(text)
    with pytest.raises(BadFile) as told:
        locks.read(path)
    assert str(told.value).startswith(f"{path} line ")
    assert WRONG[text] in str(told.value)


def test_what_was_asked_now_replaces_whole_systems_and_leaves_the_others():
    old = {**lock(), "rhel-9-x86_64": Versions("", {"a": "1"})}
    new = {"debian-12-x86_64": Versions("", {"b": "1"})}
    assert locks.merged(old, new) == {
        "debian-12-x86_64": Versions("", {"b": "1"}),
        "rhel-9-x86_64": Versions("", {"a": "1"}),
    }


def test_changes_name_what_is_new_gone_and_otherwise():
    before, after = Versions("", {"a": "1", "b": "1", "c": "1"}), Versions("", {"a": "2", "b": "1", "d": "1"})
    assert locks.changes(before, after) == [("a", "1", "2"), ("c", "1", ""), ("d", "", "1")]


# What hosts say


def answer(host, versions, system="debian-12-x86_64"):
    return Answer(host, system, versions)


def test_hosts_of_one_system_that_need_different_packages_are_locked_together():
    small = Versions(DRIVER, {"nvidia-driver-cuda": f"{DRIVER}-1"})
    found, odd = ask.gathered([answer("gpu1", small), answer("gpu2", locked())])
    assert found == {"debian-12-x86_64": locked()}
    assert odd == []


def test_hosts_of_one_system_that_would_get_different_versions_are_told_apart():
    found, odd = ask.gathered([answer("gpu1", locked()), answer("gpu2", locked(NEWER))])
    assert found == {"debian-12-x86_64": locked()}
    (other,) = odd
    assert other.host == "gpu2"
    assert "driver would be 580.178.04 here, and 580.159.04 on another host" in other.problem


def test_versions_that_cannot_be_had_together_are_not_locked():
    with pytest.raises(BadFile, match="nvidia-fabricmanager is 580.95.05-1 and the driver 580.159.04"):
        ask.gathered([answer("gpu1", locked(**{"nvidia-fabricmanager": "580.95.05-1"}))])
