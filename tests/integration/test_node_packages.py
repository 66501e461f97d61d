"""The deb and rpm packages of guard and collector: linted, built twice, installed, upgraded and removed in roots of distributions.

The roots come from the mirrors of Debian and Ubuntu. rpm packages are tried by Debian's rpm in such a root: rpm's own
database lacks python3 there, so nothing is said about their dependency.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.support.pages import ROOT

GUARD, OTHER = "/usr/lib/nodetune/guard", "9.9.9"
PASSES = "SLURM_JOB_ID=7 /usr/lib/nodetune/guard/prolog"
ROOTS = {
    "bookworm": ("http://deb.debian.org/debian", "main"),
    "trixie": ("http://deb.debian.org/debian", "main"),
    "noble": ("http://archive.ubuntu.com/ubuntu", "main universe"),
}
WORDS = "python3,systemd,init-system-helpers,rpm"
EXPLAINED = {
    "only-non-binary-in-usr-lib": "Slurm calls one path on all distributions",
    "no-url-tag": "nodetune has no site",
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
    pytest.mark.xdist_group("node-packages"),
    pytest.mark.skipif(os.geteuid() != 0, reason="roots of other distributions need root"),
]


def run(*words, codes=(0,), **more):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **more)
    assert done.returncode in codes, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def build(checkout, out, *words, **more):
    env = {**os.environ, "PYTHONPATH": str(checkout), **more}
    maintainer = ("--maintainer", "Operators <ops@nodetune.org>")
    run(sys.executable, checkout / "packaging/build.py", out, *maintainer, *words, env=env)
    return out


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """Packages of a later version, whose policy enforces."""
    folder = tmp_path_factory.mktemp("newer")
    for name in ("nodetune", "packaging", "templates", "playbooks"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    shutil.copy(ROOT / "LICENSE", folder)
    init = folder / "nodetune/__init__.py"
    init.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{OTHER}"', init.read_text()))
    return build(folder, folder / "out", "--mode", "enforce")


class Root:
    """A root of a distribution, in which commands run with their own processes and host name."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, text, codes=(0,)):
        place = self.folder  # a mount, because rpm 4.20 runs scripts in a mount namespace of their own
        mounts = f"mount --bind {place} {place}; mount -t proc proc {place}/proc"
        inside = f"{mounts}; hostname node1; exec chroot {place} /bin/sh -c {shlex.quote(text)}"
        spaces = ("unshare", "--mount", "--uts", "--net", "--pid", "--fork")
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        return run(*spaces, "sh", "-c", inside, codes=codes, env=env).stdout

    def path(self, name):
        return self.folder / name.lstrip("/")

    def take(self, folder, kind):
        shutil.rmtree(self.path("/packages"), ignore_errors=True)
        self.path("/packages").mkdir()
        for each in folder.glob(f"*.{kind}"):
            shutil.copy(each, self.path("/packages"))

    def left(self):
        """All that has the name of nodetune."""
        return self.run("find / -xdev -name '*nodetune*' -not -path '/packages/*' -not -path '/proc/*'").split()


@pytest.fixture(scope="module", params=list(ROOTS))
def archive(request, tmp_path_factory):
    suite, out = request.param, tmp_path_factory.mktemp("root") / "root.tar"
    source = "deb [trusted=yes] {} {suite} {}".format(*ROOTS[suite], suite=suite)
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={WORDS}", suite, out, source)
    return out


@pytest.fixture
def root(archive, tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    run("tar", "xf", archive, "-C", folder, "--exclude=./dev/*")
    (folder / "dev/null").touch()
    made = Root(folder)
    yield made
    shutil.rmtree(folder)


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
    before = root.left()
    root.take(packages, "deb")
    root.run("dpkg -i /packages/*.deb")
    works(root, "0.")
    assert timer_is_enabled(root)
    policy = root.path("/etc/nodetune/guard.json")
    policy.write_text(policy.read_text().replace('"reuse_seconds": 60', '"reuse_seconds": 61'))
    root.take(newer, "deb")
    root.run("dpkg --force-confold -i /packages/*.deb")
    works(root, OTHER)
    assert '"reuse_seconds": 61' in policy.read_text(), "what the operator wrote stays"
    assert timer_is_enabled(root)
    refuses_while_slurm_calls(root, "dpkg --remove nodetune-guard")
    root.run("dpkg --remove nodetune-guard nodetune-pull")
    assert policy.exists()
    assert not root.path("/usr/lib/nodetune").exists()
    root.run("dpkg --purge nodetune-guard nodetune-pull")
    assert root.left() == before
    assert not root.path("/etc/nodetune").exists()


def test_rpm_packages_come_change_and_go(root, packages, newer):
    before = root.left()
    root.take(packages, "rpm")
    known = "--force-debian" in root.run("rpm --help")  # an older rpm of Debian refuses to work without it
    rpm = "rpm --nodeps" + " --force-debian" * known
    root.run(f"{rpm} -i /packages/*.rpm")
    works(root, "0.")
    assert timer_is_enabled(root)
    policy = root.path("/etc/nodetune/guard.json")
    policy.write_text(policy.read_text().replace('"reuse_seconds": 60', '"reuse_seconds": 61'))
    root.run(f"{rpm} -U --replacepkgs /packages/*.rpm")
    works(root, "0.")
    root.take(newer, "rpm")
    root.run(f"{rpm} -U /packages/*.rpm")
    works(root, OTHER)
    assert '"reuse_seconds": 61' in policy.read_text(), "what the operator wrote stays"
    refuses_while_slurm_calls(root, f"{rpm} -e nodetune-guard")
    root.run(f"{rpm} -e nodetune-guard nodetune-pull")
    assert set(root.left()) - set(before) <= {"/etc/nodetune"}, "rpm keeps a policy that was changed"
    assert not timer_is_enabled(root)


def test_a_second_build_elsewhere_has_the_same_bytes(packages, tmp_path):
    again = build(ROOT, tmp_path / "again", TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
    made = {each.name: each.read_bytes() for each in packages.iterdir()}
    assert {each.name: each.read_bytes() for each in again.iterdir()} == made
    assert len(made) == 4


def test_lintian_has_nothing_to_say(packages):
    assert run("lintian", "--allow-root", *packages.glob("*.deb")).stdout == ""


def test_what_rpmlint_says_is_explained(packages):
    said = re.findall(r": [EW]: (\S+)", run("rpmlint", *packages.glob("*.rpm"), codes=(0, 64)).stdout)
    assert said
    assert set(said) - set(EXPLAINED) == set()
