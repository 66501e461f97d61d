"""The lock file: read, refused, merged, written; and what hosts say they would get."""

import json
from types import SimpleNamespace

import pytest
import yaml

from nodetune.foundation.exit_codes import END_STATE_MISSED
from nodetune.foundation.yaml_lines import FileError
from nodetune.provision import lock as locks
from nodetune.provision import resolve
from nodetune.provision.lock import Versions
from nodetune.provision.resolve import Resolution
from tests.support.documents import valid
from tests.support.provisioning import DRIVER, NEWER, lock, locked

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
    with pytest.raises(FileError):
        locks.check(locked(**{"nvidia-fabricmanager": "580.95.05-1"}), "debian-12-x86_64")
    assert path.read_text() == before


@pytest.mark.parametrize(
    "package",
    ["nvidia-fabricmanager", "nvidia-fabric-manager", "nvidia-fabricmanager-570", "libnvidia-nscq", "nvidia-imex",
     "nvidia-persistenced", "kmod-nvidia-open-dkms", "nvidia-dkms-580-open", "nvidia-driver-cuda", "libcuda1"],
)  # fmt: skip
def test_a_lock_with_packages_unlike_the_driver_is_refused(tmp_path, package):
    path = tmp_path / "v.lock"
    path.write_text(HEAD + f'      libnccl2: "2.28-1"\n      {package}: "3:580.95.05-1.el9"\n')
    with pytest.raises(FileError) as told:
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
    "systems: {}\n": "line 1: not a lock file of this version",
    "schema: nodetune.lock/1\nsystems: []\n": "line 2: systems must be a mapping",
    "schema: nodetune.lock/1\nsystem: {}\n": "line 2: unknown key 'system'",
    "schema: nodetune.lock/1\nsystems:\n  debian: {}\n": "line 3: 'debian' is not a system",
    "schema: nodetune.lock/1\nsystems:\n  rhel-9-x86_64:\n    driver: 580.15\n": "line 4: driver 580.15 is not a version",
    HEAD + "      a: 1.10\n": "line 6: the version of a is 1.1: write it in quotes",
    HEAD + "      a: '1 2'\n": "line 6: a needs a version such as 1.2.3-1",
    HEAD + "      'a b': '1'\n": "line 6: 'a b' is not a package name",
    HEAD.replace("    driver: 580.159.04\n", "") + "      libcuda1: '580.159.04-1'\n": "but driver: is missing",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_in_one_line_with_file_and_line(tmp_path, text):
    path = tmp_path / "v.lock"
    path.write_text(text)
    with pytest.raises(FileError) as told:
        locks.read(path)
    assert str(told.value).startswith(f"{path} line ")
    assert WRONG[text] in str(told.value)


def test_a_new_lock_replaces_only_the_systems_asked_now():
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
    return Resolution(host, system, versions)


def test_hosts_that_need_different_packages_are_locked_together():
    small = Versions(DRIVER, {"nvidia-driver-cuda": f"{DRIVER}-1"})
    gathered = resolve.gathered([answer("gpu1", small), answer("gpu2", locked())])
    assert gathered.found == {"debian-12-x86_64": locked()}
    assert gathered.disagreeing == []


def test_a_package_that_only_some_hosts_need_is_named():
    extra = Versions(DRIVER, {**locked().packages, "telnetd": "1-1"})
    gathered = resolve.gathered([answer("gpu1", extra), answer("gpu2", locked()), answer("gpu3", locked())])
    assert gathered.notes == ["debian-12-x86_64: telnetd is only for gpu1"]


def test_hosts_that_disagree_are_all_named_and_none_is_believed():
    hosts = [answer("a1", locked(NEWER)), *(answer(f"gpu{number}", locked()) for number in range(1, 4))]
    gathered = resolve.gathered(hosts)
    assert gathered.found == {}
    (said,) = gathered.disagreeing
    assert said.startswith("debian-12-x86_64: driver would be 580.178.04 on a1 and 580.159.04 on gpu1-3: lock hosts")


HOSTILE = [
    {"driver": '580.159.04"\nsystems: {}\n#'},
    {"driver": "580.159.04\x1b[2J"},
    {"driver": ["580.159.04"]},
    {"driver": "5" * 100_000},
    {"versions": {'a: 1\n      evil"': "1"}},
    {"versions": {"a": '1"\n      evil: "1'}},
    {"versions": {"a": "\x1b]0;title\x07"}},
    {"versions": {"a\u0661": "1"}},
    {"versions": {"a": None}},
    {"versions": {"a": "1" * 100_000}},
    {"versions": {"nvidia-fabricmanager": "580.95.05-1"}},
    {"versions": "all"},
    {"versions": []},
]


@pytest.mark.parametrize("told", HOSTILE)
def test_what_a_hostile_host_says_never_reaches_the_file(told):
    result = {"driver": DRIVER, "versions": {"nvidia-open": f"{DRIVER}-1"}, **told}
    asked = SimpleNamespace(host="gpu1", locked_as="debian-12-x86_64", parts={"driver": None})
    found = resolve._answer(asked, SimpleNamespace(state="ok", results=[SimpleNamespace(result=result)]))
    assert found.code == END_STATE_MISSED
    assert found.problem.isprintable()
    assert len(found.problem) < 500
    assert resolve.gathered([found, answer("gpu2", locked())]).found == {"debian-12-x86_64": locked()}


def test_versions_that_cannot_be_had_together_are_not_locked():
    with pytest.raises(FileError, match="nvidia-fabricmanager is 580.95.05-1 and the driver 580.159.04"):
        locks.check(locked(**{"nvidia-fabricmanager": "580.95.05-1"}), "debian-12-x86_64")


@pytest.mark.parametrize("version", ["580.65", "1e5", "1:2", "no", "0x10"])
def test_a_version_that_yaml_may_misread_is_in_quotes(tmp_path, version):
    found = {"debian-12-x86_64": Versions("", {"some-package": version})}
    locks.write(tmp_path / "versions.lock", found)
    assert f'"{version}"' in (tmp_path / "versions.lock").read_text()
    assert locks.read(tmp_path / "versions.lock") == found
