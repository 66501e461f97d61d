"""The deb and rpm packages of guard, collector and controller: linted, built twice, installed, upgraded and removed in clean roots.

No mirror of the RPM family is in reach: dnf of Debian and Ubuntu installs from a repository of these packages and one that
says which python3 is there.
"""

import json
import os
import re
import shutil
import sys

import pytest
from roots import Root, changed, run

from tests.support.pages import ROOT

GUARD, OTHER = "/usr/lib/nodetune/guard", "9.9.9"
PASSES = "SLURM_JOB_ID=7 /usr/lib/nodetune/guard/prolog"
FORGET = "rm -rf /etc/slurm /root/.cache /root/.local"
APT = "apt-get -y -qq"
DNF = "dnf -y --quiet --refresh --disableplugin=* --repofrompath=here,/packages --repo=here --nogpgcheck --releasever=9"
BASE = """Name: base
Version: 1
Release: 1
Summary: What a distribution has.
License: Apache-2.0
BuildArch: noarch
Provides: python3 = {python}, /bin/sh

%description
What a distribution has.

%install
mkdir -p %{{buildroot}}/usr/share/licenses

%files
%dir /usr/share/licenses
"""
EXPLAINED = {
    "manpage-not-compressed": "gzip, as on Debian: man reads both",
    "no-manual-page-for-binary": "it is there, compressed by gzip",
    "only-non-binary-in-usr-lib": "Slurm calls one path on all distributions",
    "no-signature": "rpmsign needs a site's key",
    "no-documentation": "the documentation is with nodetune",
    "invalid-license": "an SPDX name, which older lists of rpmlint lack",
    "files-duplicate": "one entry under the names that Slurm calls",
    "dangerous-command-in-%postun": "removes what the programs wrote, when the package goes",
    "dangerous-command-in-%posttrans": "makes the folder of the facts",
}

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("release"),
    pytest.mark.skipif(os.geteuid() != 0, reason="roots of other distributions need root"),
]


def build(checkout, out, *words, **more):
    env = {**os.environ, "PYTHONPATH": str(checkout), **more}
    run(sys.executable, checkout / "packaging/build.py", out, *words, env=env)
    return out


@pytest.fixture(scope="module")
def zipapp(dist):
    return "--zipapp", dist / "nodetune.pyz"


@pytest.fixture(scope="module")
def packages(zipapp, tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("packages"), *zipapp)


@pytest.fixture(scope="module")
def newer(zipapp, tmp_path_factory):
    """Packages of a later version, whose policy enforces."""
    folder = tmp_path_factory.mktemp("newer")
    for name in ("nodetune", "packaging", "templates", "playbooks", "docs"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    shutil.copy(ROOT / "LICENSE", folder)
    init = folder / "nodetune/__init__.py"
    init.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{OTHER}"', init.read_text()))
    return build(folder, folder / "out", "--mode", "enforce", *zipapp)


@pytest.fixture
def root(root_archive, tmp_path):
    made = Root(root_archive, tmp_path / "root")
    yield made
    shutil.rmtree(made.folder)


def works(root, version):
    """The prolog lets a job run and leaves its record; the collector's facts can be audited; all is compiled."""
    root.run(PASSES)
    assert " 7 " in root.path("/run/nodetune/guard/heartbeat").read_text()
    assert json.loads(root.path("/etc/nodetune/guard.json").read_text())["checks"]
    (program,) = (each for each in root.path(GUARD).iterdir() if each.is_dir())
    assert program.name.startswith(version)
    assert list(program.glob("nodetune/guard/node/__pycache__/main.*.pyc"))
    root.run("/usr/lib/nodetune/pull/collect")
    facts = root.path("/var/lib/nodetune/facts/node1.json")
    asked = ("audit", "--facts", facts, "--format", "json", "--fail-on", "never")
    (host,) = json.loads(run(sys.executable, "-m", "nodetune", *asked, codes=(0, 3)).stdout)["hosts"]
    assert host["name"] == "node1"
    assert len(host["findings"]) > 100
    root.run("nodetune audit --facts /var/lib/nodetune/facts --fail-on never", codes=(0, 3))
    root.run("rm -r /root/.cache/nodetune-zipapp")


def refuses_while_slurm_calls(root, remove):
    conf = root.path("/etc/slurm/slurm.conf")
    conf.parent.mkdir(parents=True)
    conf.write_text(f"#Prolog=/x\nProlog={GUARD}/prolog\n")
    root.run(remove, codes=(1, 100))
    root.run(PASSES)
    conf.write_text(f"#Prolog={GUARD}/prolog\n")


def timer_is_enabled(root):
    return os.path.lexists(root.path("/etc/systemd/system/timers.target.wants/nodetune-pull.timer"))


def test_deb_packages_come_change_and_go(root, packages, newer):
    before = root.content()
    root.take(packages, "*.deb")
    root.run(f"{APT} install /packages/*.deb")
    works(root, "0.")
    assert timer_is_enabled(root)
    policy = root.path("/etc/nodetune/guard.json")
    policy.write_text(policy.read_text().replace('"reuse_seconds": 60', '"reuse_seconds": 61'))
    root.take(newer, "*.deb")
    root.run(f"{APT} -o Dpkg::Options::=--force-confold install /packages/*.deb")
    works(root, OTHER)
    assert '"reuse_seconds": 61' in policy.read_text(), "what the operator wrote stays"
    assert timer_is_enabled(root)
    refuses_while_slurm_calls(root, f"{APT} remove nodetune-guard")
    root.run(f"{APT} remove nodetune-guard nodetune-pull nodetune")
    assert policy.exists()
    assert not root.path("/usr/lib/nodetune").exists()
    root.run(f"{APT} purge nodetune-guard nodetune-pull && {FORGET}")
    assert changed(before, root.content()) == []


def repository(root, folder, python):
    """Make /packages a repository of the rpm files of a folder, and one for the python3 that is said to be there."""
    root.take(folder, "*.rpm")
    spec = root.path("/packages/base.spec")
    spec.write_text(BASE.format(python=python))
    run("rpmbuild", "-bb", "--quiet", "--define", f"_rpmdir {spec.parent}", spec)
    run("createrepo_c", "--quiet", spec.parent)


def test_dnf_installs_upgrades_and_removes(root, packages, newer):
    before = root.content()
    version = root.run("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").strip()
    repository(root, packages, version)
    root.run(f"{DNF} install nodetune nodetune-guard nodetune-pull")
    works(root, "0.")
    assert timer_is_enabled(root)
    policy = root.path("/etc/nodetune/guard.json")
    policy.write_text(policy.read_text().replace('"reuse_seconds": 60', '"reuse_seconds": 61'))
    root.run(f"{DNF} reinstall nodetune-guard nodetune-pull")
    works(root, "0.")
    repository(root, newer, version)
    root.run(f"{DNF} upgrade")
    works(root, OTHER)
    assert '"reuse_seconds": 61' in policy.read_text(), "what the operator wrote stays"
    refuses_while_slurm_calls(root, f"{DNF} remove nodetune-guard")
    root.run(f"{DNF} remove nodetune nodetune-guard nodetune-pull && {FORGET}")
    assert "reuse_seconds" in root.path("/etc/nodetune/guard.json.rpmsave").read_text(), (
        "rpm keeps a policy that was changed"
    )
    root.run("rm -r /etc/nodetune")
    assert changed(before, root.content()) == []


def test_dnf_wants_the_python_that_a_package_needs(root, packages):
    repository(root, packages, "3.6")
    root.run(f"{DNF} install nodetune-pull")
    for name, version in {"nodetune-guard": "3.9", "nodetune": "3.10"}.items():
        said = root.run(f"{DNF} install {name} 2>&1", codes=(1,))
        assert f"nothing provides python3 >= {version} needed by {name}-" in said


def test_a_second_build_elsewhere_has_the_same_bytes(packages, zipapp, tmp_path):
    again = build(ROOT, tmp_path / "again", *zipapp, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
    made = {each.name: each.read_bytes() for each in packages.iterdir()}
    assert {each.name: each.read_bytes() for each in again.iterdir()} == made
    assert len(made) == 6


def test_lintian_has_nothing_to_say(packages):
    assert run("lintian", "--allow-root", *packages.glob("*.deb")).stdout == ""


def test_what_rpmlint_says_is_explained(packages):
    said = re.findall(r": [EW]: (\S+)", run("rpmlint", *packages.glob("*.rpm"), codes=(0, 64)).stdout)
    assert said
    assert set(said) - set(EXPLAINED) == set()
