"""Hosts to be provisioned, as facts; site files and locks for them."""

from dataclasses import replace

from nodetune.api.model import Absent, Unread, Value
from nodetune.config import site_file
from nodetune.provision import package_data
from nodetune.provision.lock import Versions
from tests.support import verify_records as records

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\nabc\n-----END PGP PUBLIC KEY BLOCK-----\n"
SITE = """
provision:
  repositories:
    - name: cuda
      systems: [debian-12, ubuntu-*]
      apt: {uris: "https://mirror.site/cuda", suites: "/", key: cuda.asc}
    - name: cuda-rhel
      dnf: {baseurl: "https://mirror.site/rhel9", key: cuda.asc}
  driver: {branch: "580"}
"""
DRIVER = "580.159.04"
NEWER = "580.178.04"
DEBIAN = {"id": "debian", "version": "12", "like": ["debian"], "name": "Debian GNU/Linux 12 (bookworm)"}
ROCKY = {"id": "rocky", "version": "9.4", "like": ["rocky", "rhel", "centos", "fedora"], "name": "Rocky Linux 9.4"}
MAKER = "NVIDIA Corporation <cudatools@nvidia.com>"
KERNEL_SET = (
    "nvidia-driver-cuda",
    "nvidia-kernel-open-dkms",
    "nvidia-fabricmanager",
    "libnvidia-nscq",
    "nvidia-persistenced",
)


def site(folder, text=SITE):
    """A site file's key provision, read as nodetune reads it."""
    (folder / "cuda.asc").write_text(KEY)
    path = folder / "site.yml"
    path.write_text(text)
    return site_file.read(path).provision


def bare(host="gpu1", release=DEBIAN, **planted):
    """The facts of an idle HGX H200 on which no driver was ever installed."""
    facts = records.facts(host=host)
    known = {
        **facts.facts,
        **dict.fromkeys(("gpu.compute_running_processes", "gpu.mps_compute_running_processes"), Absent()),
        **dict.fromkeys(("gpu.nvml", "gpu.driver_version"), Absent("no NVML library")),
        **dict.fromkeys((name for name in package_data.facts() if ".file." in name), Absent()),
        "host.os": Value(release),
        "modules.loaded": Value(["nouveau", *(each for each in _loaded(facts) if not each.startswith("nvidia"))]),
        "packages.manager": Value("apt" if release is DEBIAN else "dnf"),
        "packages.installed": Value({}),
        "packages.running_driver": Absent(),
        "packages.module.nvidia": Absent(),
        "packages.device_users": Value([]),
    }
    named = {name.replace("__", "."): each for name, each in planted.items()}
    about = {**facts.about, "uid": 0}
    return replace(facts, facts={**known, **named}, about=about)


def _loaded(facts):
    return facts.get("modules.loaded").value


def running(host="gpu1", driver=DRIVER, installed=None, **planted):
    """The same host with a driver of NVIDIA's packages."""
    versions = installed if installed is not None else locked(driver).packages
    return bare(
        host,
        **{
            "modules__loaded": Value(_loaded(records.facts())),
            "packages__installed": Value({name: {"version": of, "maker": MAKER} for name, of in versions.items()}),
            "packages__running_driver": Value({"version": driver, "open": True}),
            "packages__module__nvidia": Value({"file": "/lib/modules/x/updates/dkms/nvidia.ko", "version": driver}),
            "gpu__nvml": Value(f"13.{driver}"),
            "gpu__driver_version": Value(driver),
            **planted,
        },
    )


def locked(driver=DRIVER, **more):
    """What a Debian host with NVSwitches gets."""
    packages = dict.fromkeys(KERNEL_SET, f"{driver}-1")
    others = {
        "datacenter-gpu-manager-4-core": "1:4.4.2-1",
        "datacenter-gpu-manager-4-cuda13": "1:4.4.2-1",
        "datacenter-gpu-manager-4-proprietary": "1:4.4.2-1",
        "nvidia-container-toolkit": "1.18.1-1",
        "nvidia-container-toolkit-base": "1.18.1-1",
        "libnvidia-container-tools": "1.18.1-1",
        "libnvidia-container1": "1.18.1-1",
        "libnccl2": "2.28.9-1+cuda13.0",
        "libnccl-dev": "2.28.9-1+cuda13.0",
    }
    return Versions(driver, {**packages, **others, **more})


def lock(driver=DRIVER, **more):
    return {"debian-12-x86_64": locked(driver, **more)}


def unread(why="permission denied"):
    return Unread(why)
