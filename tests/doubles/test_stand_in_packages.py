"""The repositories of tests/support/packages, as the real apt, dpkg and dnf see them. Nothing is installed on this computer."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.packages import build, data, payload, rpm
from tests.support.packages.data import DRIVERS
from tests.support.packages.serve import Server

OLD, NEW, BAD = DRIVERS
COMPUTE = (
    "nvidia-driver-cuda",
    "nvidia-kernel-open-dkms",
    "nvidia-fabricmanager",
    "libnvidia-nscq",
    "nvidia-persistenced",
)
COMPUTE_RPM = (
    "nvidia-driver-cuda",
    "kmod-nvidia-open-dkms",
    "nvidia-fabricmanager",
    "libnvidia-nscq",
    "nvidia-persistenced",
)

pytestmark = [
    pytest.mark.xdist_group("packages"),
    pytest.mark.skipif(payload.compiler_missing(), reason="no gcc or no make here"),
    pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb here: apt-get install dpkg"),
    pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg here: apt-get install gnupg"),
]


def _no_dnf():
    """Why dnf cannot be tried here, or nothing."""
    if missing := rpm.missing():
        return f"{missing} missing: apt-get install rpm createrepo-c"
    if not shutil.which("dnf"):
        return "no dnf here: apt-get install dnf python3-dnf"
    return "dnf asks to be root, for an installroot too" if os.geteuid() else ""


@pytest.fixture(scope="session")
def built():
    return build.ready(managers=("apt",))


@pytest.fixture(scope="session")
def built_rpms():
    return build.ready(managers=("dnf",))


class Apt:
    """apt with a root of its own, in which nothing is installed, and with the repositories that are named."""

    def __init__(self, folder, key):
        self.folder, self.key = folder, key
        for each in (
            "etc/apt/preferences.d",
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "var/lib/dpkg",
        ):
            (folder / each).mkdir(parents=True)
        (folder / "var/lib/dpkg/status").touch()
        settings = {
            "Dir": folder,
            "Dir::State::status": folder / "var/lib/dpkg/status",
            "Dir::Etc::sourceparts": "-",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            "Acquire::Retries": "0",
        }
        (folder / "apt.conf").write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))

    def use(self, *urls, key=None):
        lines = [f"deb [signed-by={key or self.key}] {url} /\n" for url in urls]
        (self.folder / "etc/apt/sources.list").write_text("".join(lines))
        return self.run("apt-get", "update", "-o", "APT::Update::Error-Mode=any")

    def run(self, *words):
        env = {**os.environ, "APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C.UTF-8"}
        return subprocess.run(words, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def would_install(self, *names):
        """{package: version}, or what apt says against it."""
        done = self.run("apt-get", "-s", "install", *names)
        if done.returncode:
            return done.stdout + done.stderr
        return dict(re.findall(r"^Inst (\S+) \((\S+) ", done.stdout, re.MULTILINE))


@pytest.fixture
def apt(built, tmp_path):
    return Apt(tmp_path / "root", built / "key.asc")


@pytest.fixture
def apt_of(apt, built):
    """apt_of(STATE, …): apt with these of the repositories."""

    def use(*names):
        done = apt.use(*(f"file:{built}/apt/{name}" for name in names))
        assert done.returncode == 0, done.stderr
        return apt

    return use


# apt


@pytest.mark.parametrize("state", data.STATES)
def test_apt_takes_every_state_of_the_signed_repository(apt_of, state):
    said = apt_of(state).run("apt-cache", "madison", "nvidia-driver-cuda").stdout
    assert {line.split("|")[1].strip() for line in said.splitlines()} == {f"{each}-1" for each in data.STATES[state][0]}


def test_apt_refuses_a_repository_that_another_key_signed(apt, built, tmp_path):
    strange = tmp_path / "strange.asc"
    with build.keys.new() as key:
        key.export(strange)
    done = apt.use(f"file:{built}/apt/first", key=strange)
    assert done.returncode != 0
    assert "NO_PUBKEY" in done.stderr


def test_apt_refuses_an_index_that_was_changed_after_signing(apt, built, tmp_path):
    copy = tmp_path / "changed"
    shutil.copytree(built / "apt/first", copy)
    for name in ("Packages", "Packages.gz"):
        (copy / name).write_bytes(b"Package: other\n")
    done = apt.use(f"file:{copy}")
    assert done.returncode != 0
    assert "Hash" in done.stderr or "unexpected size" in done.stderr


def test_the_compute_driver_and_the_fabric_come_in_one_version(apt_of):
    chosen = apt_of("second", "distribution").would_install(*COMPUTE)
    versions = {version for name, version in chosen.items() if name not in ("dkms", "nvlsm")}
    assert versions == {f"{NEW}-1"}
    assert not [name for name in chosen if name.startswith("xserver")]


def test_an_older_driver_is_had_by_naming_every_version(apt_of):
    apt = apt_of("second", "distribution")
    wanted = apt.would_install(*COMPUTE)
    named = [f"{name}={version.replace(NEW, OLD)}" for name, version in wanted.items()]
    assert set(apt.would_install(*named).values()) >= {f"{OLD}-1"}
    assert f"{NEW}-1" not in apt.would_install(*named).values()


def test_apt_alone_does_not_match_fabric_manager_to_the_driver(apt_of):
    """The reason why nodetune has to."""
    chosen = apt_of("lagging", "distribution").would_install(*COMPUTE)
    assert (chosen["nvidia-driver-cuda"], chosen["nvidia-fabricmanager"]) == (f"{NEW}-1", f"{OLD}-1")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nvidia-kernel-open-dkms", "nvidia-kernel-dkms"),
        ("nvidia-fabricmanager", "nvidia-fabricmanager-570"),
        ("datacenter-gpu-manager-4-core", "datacenter-gpu-manager"),
        ("nvidia-open", "cuda-drivers"),
    ],
)
def test_what_excludes_each_other_is_not_installed_together(apt_of, one, other):
    said = apt_of("second", "distribution").would_install(one, other)
    assert "you have held broken packages" in said


def test_debians_driver_has_nvidias_names_and_other_makers(apt_of):
    said = apt_of("second", "debian", "distribution").run("apt-cache", "show", "libcuda1").stdout
    makers = dict(re.findall(r"^Version: (\S+)\n(?:.*\n)*?Maintainer: (.*)$", said, re.MULTILINE))
    assert makers["535.247.01-1~deb12u1"].startswith("Debian NVIDIA Maintainers")
    assert "@nvidia.com" in makers[f"{NEW}-1"]


def test_a_served_repository_can_be_unreachable_for_a_while(apt, built):
    with Server(built) as server:
        url = f"{server.url}/apt/first"
        assert apt.use(url).returncode == 0
        server.stop()
        assert "Could not connect" in apt.use(url).stderr
        server.start()
        assert apt.use(url).returncode == 0


# What is in the packages


@pytest.fixture
def unpacked(built, tmp_path):
    """unpacked(PACKAGE, STATE): the folder into which the newest one of that state was unpacked."""

    def unpack(name, state="second"):
        file = max((built / "apt" / state).glob(f"{name}_*.deb"))
        subprocess.run(["dpkg-deb", "--raw-extract", file, tmp_path / file.stem], check=True)
        return tmp_path / file.stem

    return unpack


def test_every_script_of_every_package_is_valid_shell(built, tmp_path):
    seen = 0
    for number, deb in enumerate(sorted((built / "apt/bad").glob("*.deb"))):
        subprocess.run(["dpkg-deb", "--control", deb, tmp_path / str(number)], check=True)
        for script in {*(tmp_path / str(number)).glob("p*")}:
            assert subprocess.run(["sh", "-n", script]).returncode == 0, (deb.name, script.name)
            assert "@" not in script.read_text()
            seen += 1
    assert seen > 100


@pytest.mark.parametrize("state", ["first", "second", "bad"])
def test_the_libraries_carry_their_packages_version(unpacked, state):
    version = data.STATES[state][0][-1]
    for name, library in (("libnvidia-ml1", "libnvidia-ml.so"), ("libcuda1", "libcuda.so")):
        folder = unpacked(name, state) / "usr/lib/x86_64-linux-gnu"
        content = (folder / f"{library}.{version}").read_bytes()
        assert (folder / f"{library}.1").readlink() == Path(f"{library}.{version}")
        assert version.encode() in content
        assert not [other for other in {*DRIVERS} - {version} if other.encode() in content]


@pytest.mark.skipif(Path("/sys/module/nvidia").exists(), reason="this computer has an NVIDIA driver")
def test_the_libraries_find_no_driver_where_no_module_is_loaded(unpacked, monkeypatch):
    nvml = ctypes.CDLL(str(unpacked("libnvidia-ml1") / f"usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{NEW}"))
    cuda = ctypes.CDLL(str(unpacked("libcuda1") / f"usr/lib/x86_64-linux-gnu/libcuda.so.{NEW}"))
    assert nvml.nvmlInit_v2() == 9  # NVML_ERROR_DRIVER_NOT_LOADED
    assert cuda.cuInit(0) == 100  # CUDA_ERROR_NO_DEVICE


TIMED = """
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
context, start, end = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
there, took = ctypes.c_void_p(), ctypes.c_float()
here = ctypes.create_string_buffer(1 << 20)
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
assert cuda.cuMemAlloc_v2(ctypes.byref(there), ctypes.c_size_t(1 << 20)) == 0
for event in (start, end):
    cuda.cuEventCreate(ctypes.byref(event), 0)
cuda.cuEventRecord(start, None)
cuda.cuMemcpyHtoDAsync_v2(there, here, ctypes.c_size_t(1 << 20), None)
cuda.cuEventRecord(end, None)
cuda.cuEventElapsedTime(ctypes.byref(took), start, end)
print(took.value)
"""


def test_the_bad_driver_takes_twice_as_long(unpacked):
    took = {}
    for state in ("second", "bad"):
        version = data.STATES[state][0][-1]
        library = unpacked("libcuda1", state) / f"usr/lib/x86_64-linux-gnu/libcuda.so.{version}"
        out = subprocess.run([sys.executable, "-c", TIMED, library], capture_output=True, text=True, check=True).stdout
        took[state] = float(out)
    assert took["bad"] == pytest.approx(2 * took["second"], rel=0.01)


def test_every_package_names_where_its_name_was_read():
    letters = set(re.findall(r"^\| ([A-Z]) \|", (data.HERE / "names.md").read_text(), re.MULTILINE))
    packages = [each for system in ("debian-12", "rhel-9") for each in data.packages(system, "6.1.0-1-amd64")]
    assert len(packages) > 20
    assert [each.name for each in packages if not set(each.source) <= letters] == []


# dnf


class Dnf:
    """dnf with a root and a configuration of its own, for RHEL 9."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "root").mkdir(parents=True)
        (folder / "repos").mkdir()

    def use(self, key, **urls):
        lines = [
            f"[{name}]\nname={name}\nbaseurl={url}\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file://{key}\n"
            for name, url in urls.items()
        ]
        (self.folder / "repos/stand-in.repo").write_text("\n".join(lines))

    def run(self, *words):
        settings = {
            "reposdir": self.folder / "repos",
            "varsdir": self.folder / "vars",
            "pluginpath": self.folder / "plugins",
            "module_platform_id": "platform:el9",
        }
        given = [f"--setopt={name}={value}" for name, value in settings.items()]
        command = [
            "dnf",
            "-y",
            f"--installroot={self.folder}/root",
            "--releasever=9",
            "--forcearch=x86_64",
            *given,
            *words,
        ]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})

    def would_install(self, *names):
        """{package: version} without epoch and release, or what dnf says against it."""
        done = self.run("install", "--assumeno", *names)
        lines = re.findall(r"^ (\S+)\s+(?:x86_64|noarch)\s+(?:\d+:)?([^-\s]+)-\S+\s+\S+", done.stdout, re.MULTILINE)
        return dict(lines) if "Transaction Summary" in done.stdout else done.stdout + done.stderr


@pytest.fixture
def dnf_of(request, tmp_path):
    """dnf_of(STATE, …): dnf with these of the repositories, and the stream of open modules chosen."""
    if reason := _no_dnf():
        pytest.skip(reason)
    built = request.getfixturevalue("built_rpms")

    def use(*names, stream="580-open"):
        dnf = Dnf(tmp_path / "dnf")
        dnf.use(built / "key.asc", **{name: f"file://{built}/dnf/{name}" for name in names})
        if stream:
            done = dnf.run("module", "enable", f"nvidia-driver:{stream}")
            assert done.returncode == 0, done.stdout + done.stderr
        return dnf

    yield use
    for home in (tmp_path / "dnf").rglob("pubring"):  # dnf leaves an agent behind for each
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], capture_output=True)


@pytest.mark.parametrize("state", data.STATES)
def test_dnf_takes_every_state_of_the_signed_repository(dnf_of, state):
    said = dnf_of(state, "distribution").run("-q", "repoquery", "nvidia-driver-cuda").stdout
    assert set(said.split()) == {f"nvidia-driver-cuda-3:{each}-1.el9.x86_64" for each in data.STATES[state][0]}


def test_dnf_refuses_metadata_that_was_changed_after_signing(dnf_of, tmp_path):
    dnf = dnf_of("first", stream="")
    (source,) = re.findall(r"baseurl=file://(\S+)", (dnf.folder / "repos/stand-in.repo").read_text())
    copy = tmp_path / "changed"
    shutil.copytree(source, copy)
    (copy / "repodata/repomd.xml").write_text((copy / "repodata/repomd.xml").read_text() + "<!-- changed -->")
    dnf.use(Path(source).parents[1] / "key.asc", first=f"file://{copy}")
    done = dnf.run("repoquery", "nvidia-driver-cuda")
    assert "nvidia-driver-cuda" not in done.stdout
    assert "Bad GPG signature" in done.stderr


def test_a_stream_decides_which_kernel_modules_there_are(dnf_of):
    said = dnf_of("first", stream="580-dkms").run("-q", "repoquery", "kmod-nvidia*").stdout.split()
    assert said == [f"kmod-nvidia-latest-dkms-3:{OLD}-1.el9.noarch"]


def test_the_compute_rpms_and_the_fabric_come_in_one_version(dnf_of):
    chosen = dnf_of("second", "distribution").would_install(*COMPUTE_RPM)
    assert {version for name, version in chosen.items() if name != "dkms"} == {NEW}
    assert "xorg-x11-nvidia" not in chosen


def test_dnf_alone_does_not_match_fabric_manager_to_the_driver(dnf_of):
    chosen = dnf_of("lagging", "distribution").would_install(*COMPUTE_RPM)
    assert (chosen["nvidia-driver-cuda"], chosen["nvidia-fabricmanager"]) == (NEW, OLD)


def test_rpm_fusions_driver_excludes_nvidias(dnf_of):
    said = dnf_of("second", "rpmfusion", "distribution").would_install("nvidia-driver-cuda", "xorg-x11-drv-nvidia-cuda")
    assert isinstance(said, str)
    assert "conflicts with" in said


def test_the_rpms_can_be_installed_and_replaced_in_a_root(dnf_of):
    dnf = dnf_of("second", "distribution")
    for version in (NEW, OLD):
        names = [f"{name}-3:{version}" for name in ("nvidia-driver-cuda", "kmod-nvidia-open-dkms")]
        done = dnf.run("install", "--allowerasing", *names)
        assert done.returncode == 0, done.stdout + done.stderr
        have = subprocess.run(
            ["rpm", "--root", dnf.folder / "root", "-qa", "--qf", "%{NAME} %{VERSION}\n"],
            capture_output=True,
            text=True,
        )
        found = dict(line.split() for line in have.stdout.splitlines())
        assert {found[name] for name in ("nvidia-driver-cuda", "kmod-nvidia-open-dkms", "libnvidia-ml")} == {version}
