"""playbooks/packages: whole for every system, every name with its source, and the same as in the substitute repositories."""

import re

import pytest

from nodetune.config import site_provision
from nodetune.foundation import paths
from nodetune.provision import package_data
from tests.support.packages import data

SYSTEMS = ("debian-12", "debian-13", "rhel-10", "rhel-9", "ubuntu-22.04", "ubuntu-24.04", "ubuntu-26.04")
PARTS = (*site_provision.PARTS,)
CHOICES = {
    "modules": ("open", "proprietary"),
    "build": ("dkms",),
    "fabric": ("none", "nvswitch", "nvlink5"),
    "rdma": ("inbox", "doca"),
}
BRANCHES = ("580", "590", "615", "620")
MACHINES_HAVE = {"ibverbs-providers", "rdma-core", "perftest", "iperf3", "fio", "numactl"}
"""Packages of the distribution for which there are no substitutes: the virtual machines have them, or get them from Debian."""

everywhere = pytest.mark.parametrize("system", SYSTEMS)


def entries(system):
    """(part, key, entry as a mapping) of all packages and needs."""
    for part, given in package_data.content(system)["parts"].items():
        for key in ("packages", "needs"):
            for entry in given.get(key, ()):
                yield part, key, {"name": entry} if isinstance(entry, str) else entry


def needed(system, part, branch="580", **choices):
    chosen = {"modules": "open", "build": "dkms", "fabric": "nvswitch", "rdma": "inbox", **choices}
    return package_data.load(system).needed(part, chosen, branch, "6.1.0-25-amd64")


def test_every_documented_system_has_package_data():
    assert package_data.known() == SYSTEMS
    told = (paths.shared("playbooks") / "packages" / "README.md").read_text()
    assert "like" in told and "own_version" in told


@everywhere
def test_a_file_is_of_the_system_in_its_name_and_has_every_part(system):
    content = package_data.content(system)
    assert content["system"] == system
    assert content["manager"] == ("dnf" if system.startswith("rhel") else "apt")
    assert set(content) <= {"system", "manager", "like", "oldest", "parts", "family", "ours", "others"}
    assert sorted(content["parts"]) == sorted(PARTS)


@everywhere
def test_every_part_has_names_and_a_source_that_can_be_opened(system):
    parts = package_data.content(system)["parts"]
    assert len(parts) > 3
    for part, given in parts.items():
        assert set(given) <= {"packages", "needs", "services", "replaces", "source"}, part
        assert given["packages"], part
        assert re.fullmatch(r"https://\S+", given["source"]), part
        assert all(re.fullmatch(r"[a-z0-9-]+\.(service|path|timer|socket)", unit) for unit in given["services"]), part


@everywhere
def test_an_entry_asks_only_for_choices_that_there_are(system):
    found = list(entries(system))
    assert len(found) > 10
    for part, _, entry in found:
        assert set(entry) <= {"name", "when", "since", "until", "own_version"}, (part, entry)
        assert re.fullmatch(r"[a-z0-9][a-z0-9.+-]*(\{(branch|kernel)\}[a-z0-9.+-]*)?", entry["name"]), (part, entry)
        for choice, value in entry.get("when", {}).items():
            assert value in CHOICES[choice], (part, entry)


@everywhere
@pytest.mark.parametrize("branch", BRANCHES)
def test_every_branch_has_one_open_module_and_user_space(system, branch):
    names = needed(system, "driver", branch).packages
    assert len([name for name in names if "dkms" in name]) == 1
    assert len([name for name in names if "dkms" not in name]) >= 1
    assert len(set(names)) == len(names)


@everywhere
@pytest.mark.parametrize(("branch", "modules"), [("615", 1), ("620", 0)])
def test_proprietary_modules_end_with_their_last_branch(system, branch, modules):
    assert (
        len([name for name in needed(system, "driver", branch, modules="proprietary").packages if "dkms" in name])
        == modules
    )


@everywhere
def test_nvlsm_is_for_blackwell_only_and_has_versions_of_its_own(system):
    assert "nvlsm" not in needed(system, "fabric-manager").packages
    newer = needed(system, "fabric-manager", fabric="nvlink5")
    assert "nvlsm" in newer.packages
    assert newer.own_version == ("nvlsm",)


@everywhere
def test_the_sign_of_another_owner_says_how_to_remove_it(system):
    others = package_data.content(system)["others"]
    assert others
    for other in others:
        assert set(other) <= {"owner", "packages", "maker", "files", "remove", "source"}
        assert other["owner"] and other["remove"]
        assert other.get("packages") or other.get("files")
        assert other["source"].startswith("https://")


@pytest.mark.parametrize("system", ["debian-12", "rhel-9"])
def test_named_packages_are_in_the_test_repositories(system):
    """The names were written down twice, by two people: here they meet."""
    stand_ins = {each.name: each for each in data.packages(system, "6.1.0-25-amd64")}
    units = {unit for each in stand_ins.values() for unit in each.units}
    units |= {path.rpartition("/")[2] for each in stand_ins.values() for path in each.empty}
    assert len(PARTS) > 3
    for part in PARTS:
        for choice in ({}, {"modules": "proprietary"}, {"fabric": "nvlink5"}, {"rdma": "doca"}):
            found = needed(system, part, **choice)
            named = {
                name.removesuffix("-6.1.0-25-amd64") if "devel" in name else name
                for name in (*found.packages, *found.needs)
            }
            assert named - MACHINES_HAVE <= set(stand_ins), part
            assert set(found.services) <= units, part
