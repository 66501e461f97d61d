"""playbooks/engine/provision.yml and versions.yml by the real apt and dnf: packages are installed, in a throw-away copy of this system."""

import os
import shutil
import socket

import pytest

from nodetune.provision import package_data
from tests.support.cell import Cell, impossible
from tests.support.packages import build, payload, rpm
from tests.support.packages.data import DRIVERS, packages
from tests.support.packages.serve import Server

OLD, NEW, _ = DRIVERS
KIN = ("driver", "fabric-manager", "persistenced")
CHOICES = {"modules": "open", "build": "dkms", "fabric": "nvswitch", "rdma": "inbox"}
RHEL = 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.6"\nPLATFORM_ID="platform:el9"\n'
"""os-release of a RHEL 9.6: what it says is all that dnf takes from the system itself."""

FILES = "/etc/apt /etc/dnf /etc/yum.repos.d /etc/pki /etc/modprobe.d /var/lib/apt /var/lib/dpkg /var/lib/rpm /var/cache"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(impossible()), reason=impossible()),
    pytest.mark.skipif(payload.compiler_missing(), reason="no gcc or no make here"),
    pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg here: apt-get install gnupg"),
]
with_dnf = [
    pytest.mark.skipif(bool(rpm.missing()), reason=f"{rpm.missing()} missing: apt-get install rpm createrepo-c"),
    pytest.mark.skipif(not shutil.which("dnf"), reason="no dnf here: apt-get install dnf python3-dnf"),
]


class Site:
    """A host of one manager in a cell, and the site's repositories: `state` is the one that has NVIDIA's packages."""

    def __init__(self, cell, url, key, system):
        self.cell, self.url, self.key = cell, url, key
        self.data = package_data.load(system)

    def repositories(self, *names):
        return [{"name": name, self.data.manager: self._where(name)} for name in names]

    def _where(self, name):
        if self.data.manager == "dnf":
            return {"baseurl": f"{self.url}/dnf/{name}", "key_text": self.key}
        return {"uris": f"{self.url}/apt/{name}", "suites": "/", "components": "", "key_text": self.key}

    def given(self, parts=KIN, state="first", driver=OLD, **more):
        """The variables of both playbooks."""
        needed = {part: self.data.needed(part, CHOICES, "580", "").data() for part in parts}
        for each in needed.values():
            each["needs"] = []  # the headers of this computer's kernel are in no stand-in repository
        return {
            "nodetune_manager": self.data.manager,
            "nodetune_repositories": self.repositories(state, "distribution"),
            "nodetune_parts": list(parts),
            "nodetune_packages": needed,
            "nodetune_versions": self.locked(driver),
            "nodetune_driver": driver,
            "nodetune_branch": "580",
            "nodetune_family": list(self.data.family),
            **more,
        }

    def locked(self, driver):
        """The driver's part of a lock: all that comes in the driver's version."""
        every = packages(self.data.system)
        return {
            each.name: f"{each.epoch}:{each.version}" if each.epoch else each.version
            for each in every
            if each.driver == driver
        }

    def versions(self, **more):
        return self.cell.play("versions", self.given(**more))

    def provision(self, check=False, **more):
        return self.cell.play("provision", self.given(**more), check)

    def refused(self, playbook="provision", **more):
        """The message of a play that fails, which is one line."""
        came = self.cell.play(playbook, self.given(**more))
        assert came["state"] == "failed"
        assert "\n" not in came["message"] and "Traceback" not in came["message"]
        return came["message"]

    def files(self):
        """What stands where a package manager keeps what it knows."""
        return self.cell.run(
            ["sh", "-c", f"find {FILES} -type f -printf '%p %s %T@\\n' 2>/dev/null | sort"], check=False
        )

    def installed(self):
        """Name → version without epoch, of the driver's family."""
        if self.data.manager == "apt":
            return {name: version for name, version in self.cell.debs().items() if "nvidia" in name or "cuda" in name}
        out = self.cell.run(["rpm", "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n"])
        return {name: version for name, version in (line.split() for line in out.splitlines()) if "nvidia" in name}


@pytest.fixture(scope="module")
def apt_served():
    built = build.ready(managers=("apt",))
    with Server(built) as server:
        yield server, (built / "key.asc").read_text(), built


@pytest.fixture(scope="module")
def dnf_served():
    built = build.ready(managers=("dnf",))
    with Server(built) as server:
        yield server, (built / "key.asc").read_text(), built


@pytest.fixture
def debian(apt_served):
    server, key, _ = apt_served
    with Cell() as cell:
        yield Site(cell, server.url, key, "debian-12")


@pytest.fixture
def rhel(dnf_served):
    server, key, _ = dnf_served
    with Cell() as cell:
        cell.write("/etc/os-release", RHEL)
        yield Site(cell, server.url, key, "rhel-9")


@pytest.fixture(params=["apt", pytest.param("dnf", marks=with_dnf)])
def site(request):
    return request.getfixturevalue("debian" if request.param == "apt" else "rhel")


def changed(came):
    return [each["task"] for each in came["results"] if each["result"].get("changed")]


def steps(came):
    return [tuple(step) for each in came["results"] for step in each["result"].get("steps", ())]


def of_driver(found):
    """The upstream versions that there are among packages that must have one."""
    return {version.partition("-")[0] for version in found.values()}


# asking


def test_resolving_lists_versions_and_changes_nothing(site):
    before = site.files()
    came = site.versions(state="second", parts=(*KIN, "nccl"))
    found = came["results"][-1]["result"]
    assert (came["state"], found["driver"], changed(came)) == ("ok", NEW, [])
    named = {name for part in (*KIN, "nccl") for name in site.data.needed(part, CHOICES, "580", "").packages}
    assert named < set(found["versions"]), "dependencies are told too"
    assert found["versions"]["nvidia-fabricmanager"] == f"{NEW}-1"
    assert site.files() == before


def test_check_mode_and_a_full_version_give_that_version(site):
    came = site.cell.play("versions", site.given(state="second", nodetune_branch=OLD), check=True)
    assert came["results"][-1]["result"]["driver"] == OLD


def test_what_is_installed_already_is_told_as_well(site):
    site.provision()
    found = site.versions()["results"][-1]["result"]
    assert {"nvidia-driver-cuda", "nvidia-fabricmanager", "libnvidia-nscq"} < set(found["versions"])
    assert found["driver"] == OLD


def test_a_lagging_fabric_manager_is_refused_with_versions(site):
    message = site.refused("versions", state="lagging")
    assert f"nvidia-fabricmanager {OLD}-1" in message
    assert f"--driver {OLD}" in message
    came = site.versions(state="lagging", nodetune_branch=OLD)
    assert came["results"][-1]["result"]["driver"] == OLD


def hosts_own(site, state):
    """The host has this state of NVIDIA's packages in a repository of its own."""
    if site.data.manager == "apt":
        site.cell.write("/etc/apt/sources.list.d/own.list", f"deb [trusted=yes] {site.url}/apt/{state} /\n")
    else:
        text = f"[own]\nname=own\nbaseurl={site.url}/dnf/{state}\nenabled=1\ngpgcheck=0\nmodule_hotfixes=1\n"
        site.cell.write("/etc/yum.repos.d/own.repo", text)


def test_a_newer_driver_of_the_host_does_not_win_over_the_sites(site):
    hosts_own(site, "second")
    came = site.versions()
    assert (came["state"], came["message"]) == ("ok", "")
    found = came["results"][-1]["result"]
    named = {name for part in KIN for name in site.data.needed(part, CHOICES, "580", "").packages}
    assert named < set(found["versions"])
    assert found["driver"] == OLD


def test_a_driver_only_in_repositories_of_the_host_is_refused(site):
    hosts_own(site, "second")
    message = site.refused("versions", nodetune_repositories=site.repositories("distribution"))
    assert message.startswith("the site's repositories (distribution) have no ")
    assert "nvidia-driver-cuda" in message
    assert "add one that has them under provision: repositories: in the site file" in message


@pytest.mark.parametrize("playbook", ["versions", "provision"])
def test_a_repository_that_does_not_answer_is_named(site, playbook):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        site.url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        message = site.refused(playbook)
    assert "first" in message or "distribution" in message
    assert "can this host reach it?" in message
    assert not site.installed()


def test_a_key_of_somebody_else_is_refused(site, tmp_path):
    os.chmod(tmp_path, 0o700)
    made = {"GNUPGHOME": str(tmp_path)}
    site.cell.run(["gpg", "--batch", "--passphrase", "", "--quick-gen-key", "other@example.org"], env=made)
    site.key = site.cell.run(["gpg", "--armor", "--export", "other@example.org"], env=made)
    site.cell.run(["gpgconf", "--kill", "all"], env=made)
    assert "does key: in the site file have the key that signs" in site.refused()
    assert not site.installed()


@pytest.mark.parametrize("playbook", ["versions", "provision"])
def test_a_package_that_no_repository_has_is_named(site, playbook):
    given = site.given()
    given["nodetune_packages"]["driver"]["packages"].append("nvidia-no-such-thing")
    given["nodetune_versions"]["nvidia-no-such-thing"] = f"{OLD}-1"
    message = site.cell.play(playbook, given)["message"]
    assert message.startswith("nvidia-no-such-thing is not in any repository: ")


# installing


@pytest.mark.full
def test_a_dry_run_tells_the_steps_that_a_run_then_takes_once(site):
    before = site.files()
    dry_run = site.provision(check=True)
    assert (dry_run["state"], dry_run["message"]) == ("ok", "")
    assert site.files() == before, "a dry run changes nothing"
    came = site.cell.play("provision", without_units(site))
    assert (came["state"], came["message"]) == ("ok", "")
    plugin = {"python3-dnf-plugin-versionlock"}
    assert [step for step in steps(came) if step[0] not in plugin] == [s for s in steps(dry_run) if s[0] not in plugin]
    found = site.installed()
    assert found["nvidia-driver-cuda"].startswith(OLD)
    assert found["nvidia-fabricmanager"] == f"{OLD}-1"
    again = site.cell.play("provision", without_units(site))
    assert (again["state"], changed(again)) == ("ok", [])
    dry_run = site.cell.play("provision", without_units(site), check=True)
    assert (dry_run["state"], changed(dry_run)) == ("ok", [])


def without_units(site, **more):
    """RHEL's substitutes have empty units, which are masked ones: they can be installed, not enabled."""
    given = site.given(**more)
    if site.data.manager == "dnf":
        for each in given["nodetune_packages"].values():
            each["services"] = []
    return given


@pytest.mark.full
def test_the_driver_family_moves_in_one_transaction(site):
    for driver, state in ((OLD, "first"), (NEW, "second"), (OLD, "second")):
        came = site.cell.play("provision", without_units(site, driver=driver, state=state))
        assert (came["state"], came["message"]) == ("ok", "")
        kin = {
            name: version
            for name, version in site.installed().items()
            if name.startswith(("nvidia-driver", "nvidia-fabric"))
        }
        assert of_driver({**kin, "module": module_version(site)}) == {driver}
    assert transactions(site) == 3


def module_version(site):
    found = site.installed()
    return found.get("nvidia-kernel-open-dkms") or found["kmod-nvidia-open-dkms"]


def transactions(site):
    """How often the package manager began to exchange the driver."""
    if site.data.manager == "apt":
        log = site.cell.read("/var/log/apt/history.log")
        return len([part for part in log.split("Start-Date")[1:] if "nvidia-fabricmanager:" in part])
    return len(
        [
            line
            for line in site.cell.run(["dnf", "history", "list", "nvidia-fabricmanager"]).splitlines()
            if line[:6].strip().isdigit()
        ]
    )


def test_mismatched_versions_are_refused_before_any_change(site):
    before = site.files()
    given = site.given(state="second", driver=NEW)
    given["nodetune_versions"]["nvidia-fabricmanager"] = f"{OLD}-1"
    came = site.cell.play("provision", given)
    assert came["message"].startswith(f"driver {NEW} would be installed with nvidia-fabricmanager {OLD}-1: ")
    del given["nodetune_versions"]["nvidia-fabricmanager"]
    assert "no nvidia-fabricmanager" in site.cell.play("provision", given)["message"]
    assert site.files() == before


def test_a_missing_version_is_reported_with_available_ones(site):
    given = site.given(state="second", driver="580.177.01")
    given["nodetune_versions"] = {
        name: version.replace(OLD, "580.177.01") for name, version in site.locked(OLD).items()
    }
    message = site.cell.play("provision", given)["message"]
    assert "is not in any repository: they have " in message
    assert NEW in message
    assert not site.installed().get("nvidia-fabricmanager")


@pytest.mark.full
def test_a_repository_that_left_the_site_file_is_taken_away(site):
    site.cell.play("provision", without_units(site, parts=["nccl"], nodetune_versions={}))
    given = without_units(site, parts=["nccl"], nodetune_versions={})
    given["nodetune_repositories"] = site.repositories("first")
    assert "Repositories" in changed(site.cell.play("provision", given))
    place = "/etc/apt/sources.list.d" if site.data.manager == "apt" else "/etc/yum.repos.d"
    assert [name for name in site.cell.run(["ls", place]).split() if "nodetune" in name] == [
        f"nodetune-first.{'sources' if site.data.manager == 'apt' else 'repo'}"
    ]


# Debian


@pytest.mark.full
def test_units_are_enabled_and_pins_resist_a_newer_driver(debian):
    debian.provision()
    assert (
        debian.cell.run(["systemctl", "is-enabled", "nvidia-fabricmanager", "nvidia-persistenced"]).split()
        == ["enabled"] * 2
    )
    came = debian.provision(parts=["nccl"], state="second")  # the newer driver can be had from now on
    assert "Repositories" in changed(came)
    upgrade = debian.cell.run(["apt-get", "-s", "dist-upgrade"])
    assert "nvidia-driver-cuda" not in upgrade
    assert '"^nvidia-driver-cuda$";' in debian.cell.run(["apt-config", "dump"]).replace(
        'Unattended-Upgrade::Package-Blacklist:: "', '"'
    )


@pytest.mark.full
def test_other_parts_replace_only_what_they_name(debian):
    parts = ("dcgm", "dcgm-exporter", "container-toolkit", "gds", "nccl")
    came = debian.cell.play("provision", debian.given(parts=parts, nodetune_versions={}))
    assert (came["state"], came["message"]) == ("ok", "")
    assert debian.cell.debs()["datacenter-gpu-manager-exporter"] == "4.8.2-1"
    assert debian.cell.run(["systemctl", "is-enabled", "nvidia-dcgm-exporter"]).strip() == "enabled"
    assert debian.cell.debs()["nvidia-fs-dkms"] == "2.26.6-1"
    assert debian.cell.run(["tail", "-n", "1", "/etc/modules-load.d/nodetune-nvidia_fs.conf"]) == "nvidia_fs\n"
    assert debian.cell.debs()["datacenter-gpu-manager-4-core"] == "1:4.4.2-1"
    given = debian.given(parts=("dcgm",), nodetune_versions={})
    debian.cell.run(["dpkg", "--remove", "datacenter-gpu-manager-exporter"])  # it depends on DCGM 4
    given["nodetune_packages"]["dcgm"]["packages"] = ["datacenter-gpu-manager"]
    given["nodetune_packages"]["dcgm"]["replaces"] = []
    message = debian.cell.play("provision", given)["message"]
    assert "would remove datacenter-gpu-manager-4-core" in message
    assert "datacenter-gpu-manager" not in debian.cell.debs()


@pytest.mark.full
def test_other_parts_wait_for_the_guard_only_if_packages_change(debian):
    never = {"parts": ("nccl",), "nodetune_versions": {}, "nodetune_guard": {"never": True}}
    assert "does not support guard never: nothing is changed" in debian.refused(**never)
    assert "libnccl2" not in debian.cell.debs()
    assert debian.provision(parts=("nccl",), nodetune_versions={})["state"] == "ok"
    came = debian.provision(**never)
    assert (came["state"], came["message"], steps(came)) == ("ok", "", [])


@pytest.mark.full
def test_a_failing_package_script_is_named_and_retried(debian):
    debian.cell.write("/etc/nodetune-stand-in/fail", "nvidia-kernel-open-dkms\n")
    message = debian.refused()
    assert message.startswith("nvidia-kernel-open-dkms: ")
    assert "run this again to continue" in message
    debian.cell.run(["rm", "/etc/nodetune-stand-in/fail"])
    came = debian.provision()
    assert (came["state"], came["message"]) == ("ok", "")
    assert of_driver({"module": module_version(debian)}) == {OLD}


@pytest.mark.full
def test_an_installation_that_was_cut_short_is_ended_first(debian, apt_served):
    _, _, built = apt_served
    debian.cell.write("/root/half.deb", "")
    found = next((built / "apt/first").glob(f"nvidia-fabricmanager_{OLD}-1_amd64.deb"))
    debian.cell.run(["cp", str(found), "/root/half.deb"])
    debian.cell.run(["dpkg", "--unpack", "/root/half.deb"])
    came = debian.provision()
    assert (came["state"], came["message"]) == ("ok", "")
    assert debian.installed()["nvidia-fabricmanager"] == f"{OLD}-1"


@pytest.mark.full
def test_a_repository_known_with_another_key_is_explained(debian):
    debian.cell.write("/etc/apt/keyrings/cuda.asc", debian.key)
    text = f"deb [signed-by=/etc/apt/keyrings/cuda.asc] {debian.url}/apt/first /\n"
    debian.cell.write("/etc/apt/sources.list.d/cuda.list", text)
    assert "the host already has it in another file" in debian.refused()


def test_a_role_alone_says_which_one_has_to_come_before(debian):
    """As a person runs it: ansible-playbook with the variables of a file."""
    import json
    import sys
    from pathlib import Path

    debian.cell.write("/root/vars.json", json.dumps(debian.given()))
    books = Path(__file__).parents[3] / "playbooks"
    env = {
        "ANSIBLE_LIBRARY": f"{books}/library",
        "ANSIBLE_MODULE_UTILS": f"{books}/module_utils",
        "ANSIBLE_LOCALHOST_WARNING": "0",
    }
    play = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        "localhost,",
        "-c",
        "local",
        "-e",
        "@/root/vars.json",
    ]
    play += ["-e", "ansible_python_interpreter=/usr/bin/python3", f"{books}/engine/provision.yml", "--tags"]
    out = debian.cell.run([*play, "fabric_manager"], check=False, env=env)
    assert f"driver {OLD} is wanted, but found no libnvidia-nscq, no nvidia-fabricmanager: run role driver first" in out
    out = debian.cell.run([*play, "repositories,pins,driver,fabric_manager"], env=env)
    assert "failed=0" in out
    assert debian.installed()["nvidia-fabricmanager"] == f"{OLD}-1"


# RHEL


@pytest.mark.full
@pytest.mark.parametrize("_", [pytest.param(0, marks=with_dnf)])
def test_lines_of_others_in_the_versionlock_list_stay(rhel, _):
    rhel.cell.write("/etc/dnf/plugins/versionlock.list", "# mine\nbash-0:5.1.8-9.el9.*\n")
    given = without_units(rhel, parts=["nccl"], nodetune_versions={"libnccl": "2.28.9-1+cuda13.0"})
    rhel.cell.play("provision", given)
    text = rhel.cell.read("/etc/dnf/plugins/versionlock.list")
    assert text.startswith("# mine\nbash-0:5.1.8-9.el9.*\n# begin: nodetune provision")
    assert "libnccl-0:2.28.9-1+cuda13.0.*\n" in text
    rhel.cell.play("provision", {**given, "nodetune_versions": {}})
    assert rhel.cell.read("/etc/dnf/plugins/versionlock.list") == "# mine\nbash-0:5.1.8-9.el9.*\n"


def two_at_once(rhel, served):
    """What a transaction to the newer Fabric Manager leaves that ends before it took the older one away."""
    _, _, built = served
    package = next((built / "dnf/second").rglob(f"nvidia-fabricmanager-{NEW}-1*.rpm"))
    rhel.cell.run(["cp", str(package), "/root/newer.rpm"])
    rhel.cell.run(["rpm", "-i", "--force", "--nodeps", "--noscripts", "/root/newer.rpm"])
    assert fabric_managers(rhel) == [f"{OLD}-1", f"{NEW}-1"]


def fabric_managers(rhel):
    return sorted(rhel.cell.run(["rpm", "-q", "--qf", "%{VERSION}-%{RELEASE}\\n", "nvidia-fabricmanager"]).split())


@pytest.mark.full
@pytest.mark.parametrize("driver", [pytest.param(each, marks=with_dnf) for each in (OLD, NEW)])
def test_two_installed_versions_become_the_wanted_one(rhel, dnf_served, driver):
    rhel.cell.play("provision", without_units(rhel))
    two_at_once(rhel, dnf_served)
    given = without_units(rhel, driver=driver, state="second")
    other = NEW if driver == OLD else OLD
    assert ("nvidia-fabricmanager", f"{other}-1", f"{driver}-1") in steps(
        rhel.cell.play("provision", given, check=True)
    )
    came = rhel.cell.play("provision", given)
    assert (came["state"], came["message"]) == ("ok", "")
    assert fabric_managers(rhel) == [f"{driver}-1"]
    assert "/nv-fabricmanager" not in rhel.cell.run(["rpm", "-V", "nvidia-fabricmanager"], check=False)
    again = rhel.cell.play("provision", given)
    assert (again["state"], changed(again), steps(again)) == ("ok", [], [])


@pytest.mark.full
@pytest.mark.parametrize("_", [pytest.param(0, marks=with_dnf)])
def test_two_installed_versions_are_reported_without_the_wanted(rhel, dnf_served, _):
    rhel.cell.play("provision", without_units(rhel))
    two_at_once(rhel, dnf_served)
    given = without_units(rhel)
    given["nodetune_repositories"] = rhel.repositories("distribution")
    message = rhel.cell.play("provision", given)["message"]
    assert f"nvidia-fabricmanager is installed in two versions, {OLD}-1 and {NEW}-1, and " in message
    assert fabric_managers(rhel) == [f"{OLD}-1", f"{NEW}-1"]
