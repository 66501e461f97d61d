"""Driver packages that unattended-upgrades is to leave alone: written, read by apt and by the probe, rolled back."""

import shutil
import subprocess

import pytest

from nodetune import checks
from nodetune.api import remedies
from nodetune.api.model import HostFacts, Value
from nodetune.probe import read, updates
from tests.support.fixing import built, files, finding_of, refused
from tests.unit.checks.test_cases import judge

PACKAGES = ("libcuda1", "nvidia-driver-580-open")
SITE = 'APT::Periodic::Unattended-Upgrade "1";\nUnattended-Upgrade::Package-Blacklist { "vim"; };\n'
STATUS = "".join(f"Package: {name}\nStatus: install ok installed\n\n" for name in PACKAGES)
FIX = finding_of(remedies.apt_conf(), "kept", PACKAGES)


def host(*packages):
    known = {"enabled": True, "reboots": False, "blacklist": [], "driver_packages": dict.fromkeys(packages, "")}
    return HostFacts("a", {"own.files": Value({}), "updates.apt": Value(known)})


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "ROOT", str(tmp_path))
    for path, text in {
        "usr/bin/unattended-upgrade": "",
        "var/lib/dpkg/status": STATUS,
        "etc/apt/apt.conf.d/50site": SITE,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def verdict():
    apt = dict(updates.collect([], lambda text: None))["apt"]
    os_release = {"id": "debian", "version": "12", "like": [], "name": "Debian"}
    runs = {"value": {"active": "active", "enabled": "enabled", "pid": None}}
    facts = {"host.os": {"value": os_release}, "updates.apt": apt, "updates.dnf": {"absent": "no dnf"}}
    facts |= {f"services.{name}.timer": {"absent": "no"} for name in DNF} | {"services.apt-daily-upgrade.timer": runs}
    return judge(checks.load("driver-updated-unattended"), facts).status


DNF = ("dnf-automatic", "dnf-automatic-install", "dnf5-automatic")


def test_the_driver_is_left_alone_and_a_rollback_restores_all(do, root):
    (change,) = built(host(*PACKAGES), FIX)
    place = root / change["path"].lstrip("/")
    assert verdict() == "fail"
    assert do([{**change, "path": str(place)}]).changed
    assert verdict() == "pass"
    do.back()
    assert verdict() == "fail"
    assert not place.exists()


@pytest.mark.skipif(not shutil.which("apt-config"), reason="no apt-config")
def test_apt_adds_the_list_to_that_of_the_site(root):
    ((path, text),) = files(built(host(*PACKAGES), FIX)).items()
    (root / path.lstrip("/")).write_text(text)
    config = root / "apt.conf"
    config.write_text(f'Dir::Etc::parts "{root}/etc/apt/apt.conf.d";\n')
    shown = subprocess.run(
        ["apt-config", "dump"],
        env={"APT_CONFIG": str(config), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    listed = [line for line in shown.stdout.splitlines() if line.startswith("Unattended-Upgrade::Package-Blacklist::")]
    assert [line.split('"')[1] for line in listed] == ["vim", "libcuda1$", "nvidia-driver-580-open$"]


def test_modules_of_one_kernel_and_systems_without_apt_are_refused():
    assert "must come with its kernel" in refused(host(*PACKAGES, "linux-modules-nvidia-580-6.8.0-60-generic"), FIX)
    assert "excludepkgs" in refused(HostFacts("a", {"own.files": Value({})}), FIX)
