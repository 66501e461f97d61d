"""What the probe tells of packages: asked of this machine's own dpkg, and read from planted files."""

import os
import shutil
import subprocess

import pytest

from nodetune.onhost import command
from nodetune.probe import packages

RUNNING = "NVRM version: NVIDIA UNIX {}x86_64{}  580.159.04  Release Build  (dvs-builder)\nGCC version:  gcc 12\n"


@pytest.fixture
def told(collect):
    """What the probe says: with names that were asked for."""
    return lambda *names: collect("packages", names)


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="no dpkg on this machine")
def test_packages_are_listed_with_version_and_vendor(told):
    found = told("like.dpkg*", "like.no-such-package-*")["packages.installed"]["value"]
    version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "dpkg"], capture_output=True, text=True).stdout
    assert found["dpkg"]["version"] == version
    assert "@" in found["dpkg"]["maker"]
    assert not any(name.startswith("no-such") for name in found)


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="no dpkg on this machine")
def test_a_pattern_is_no_option_and_no_command(told, tmp_path):
    harmless = tmp_path / "touched"
    told("like.--version", f"like.$(touch {harmless})", f"like.; touch {harmless}")
    assert not harmless.exists()


def test_a_host_without_package_manager_says_so(tree, told):
    tree({"/proc/": None})
    found = told("like.*")
    assert found["packages.manager"] == {"absent": "neither apt nor dnf"}
    assert found["packages.installed"] == {"absent": "neither apt nor dnf"}


def test_dnf_is_the_manager_where_there_is_no_apt(tree, told):
    folder = tree({"/usr/bin/dnf": "x", "/usr/bin/rpm": "x"})
    (folder / "usr/bin/rpm").chmod(0o755)
    assert told()["packages.manager"] == {"value": "dnf"}


def test_debian_with_dnf_next_to_apt_is_still_debian(tree, told):
    folder = tree({f"/usr/bin/{name}": "x" for name in ("apt-get", "dpkg-query", "dnf", "rpm")})
    for name in ("dpkg-query", "rpm"):
        (folder / "usr/bin" / name).chmod(0o755)
    assert told()["packages.manager"] == {"value": "apt"}


@pytest.mark.skipif(not shutil.which("rpm"), reason="no rpm on this machine")
def test_rpm_without_a_database_is_not_asked_because_it_would_write_one(tmp_path, monkeypatch):
    """Debian's rpm has its database in the home of who asks."""
    (tmp_path / ".rpmmacros").write_text("%_dbpath %{getenv:HOME}/.rpmdb\n")
    monkeypatch.setitem(command.ENVIRONMENT, "HOME", str(tmp_path))
    assert packages._installed("dnf", ["*"]) == {"value": {}}
    assert [each.name for each in tmp_path.iterdir()] == [".rpmmacros"]
    subprocess.run(["rpm", "-qa"], env=command.ENVIRONMENT, check=True)
    assert packages._rpm_has_database()
    assert packages._installed("dnf", ["*"]) == {"value": {}}


def test_signs_are_files_that_are_there_or_not(tree, told):
    tree({"/usr/bin/nvidia-uninstall": "x"})
    found = told("file./usr/bin/nvidia-uninstall", "file./run/nvidia/driver/usr")
    assert found["packages.file./usr/bin/nvidia-uninstall"] == {"value": True}
    assert "absent" in found["packages.file./run/nvidia/driver/usr"]


@pytest.mark.parametrize(
    ("kind", "release", "is_open"), [("", " Kernel Module", False), ("Open Kernel Module for ", "", True)]
)
def test_the_loaded_driver_tells_its_version_and_its_kind(tree, told, kind, release, is_open):
    tree({"/proc/driver/nvidia/version": RUNNING.format(kind, release)})
    assert told()["packages.running_driver"] == {"value": {"version": "580.159.04", "open": is_open}}


def test_a_version_file_of_another_form_is_unread(tree, told):
    tree({"/proc/driver/nvidia/version": "what\n"})
    assert "unexpected content" in told()["packages.running_driver"]["unread"]


def test_users_of_a_gpu_exclude_the_services_of_the_driver(tree, told):
    folder = tree(
        {
            "/proc/7/comm": "python\n",
            "/proc/7/fd/3": "-> /dev/nvidia0",
            "/proc/8/comm": "nvidia-persiste\n",
            "/proc/8/fd/3": "-> /dev/nvidia0",
            "/proc/9/comm": "bash\n",
            "/proc/9/fd/0": "-> /dev/nvidiactl",
        }
    )
    assert os.path.islink(folder / "proc/7/fd/3")
    assert told()["packages.device_users"] == {"value": [[7, "python"]]}


def test_the_services_are_named_as_the_kernel_names_processes():
    assert all(len(name) <= 15 for name in packages.SERVICES)


def test_a_module_that_the_kernel_has_not_is_absent(told):
    fact = told("module.no_such_module")["packages.module.no_such_module"]
    assert "absent" in fact or "modinfo is not installed" in fact["unread"]


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="no dpkg on this machine")
def test_an_audit_asks_for_judged_packages_alone(told, monkeypatch):
    monkeypatch.setattr(packages, "JUDGED", ["dpkg*"])
    found = told("judged")
    assert set(found) == {"packages.judged"}
    assert found["packages.judged"]["value"]["dpkg"]["version"]
    assert "packages.judged" in told("judged", "manager")
