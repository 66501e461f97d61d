"""What a host is to get, and why one is left alone."""

import pytest

from nodetune.api.model import Absent, Each, Unread, Value
from nodetune.config.site_provision import PARTS
from nodetune.foundation.exit_codes import INCOMPLETE
from nodetune.provision import decide, package_data, results, running_driver
from nodetune.provision.facts import HostRefusedError
from nodetune.provision.lock import Versions
from tests.support import verify_records as records
from tests.support.provisioning import DEBIAN, DRIVER, MAKER, NEWER, ROCKY, SITE, bare, lock, locked, running, site


@pytest.fixture
def wish(tmp_path):
    return site(tmp_path)


def refused(facts, wish, versions=None):
    with pytest.raises(HostRefusedError) as told:
        decide.decide(facts, wish, lock() if versions is None else versions)
    return told.value


def with_devices(*ids, switches=False):
    """PCI devices as the facts of a host: GPUs of these device IDs."""
    gpus = {
        f"0000:{number:02x}:00.0": {"vendor": "10de", "device": each, "class": "0302"}
        for number, each in enumerate(ids)
    }
    more = {"0000:f0:00.0": {"vendor": "10de", "device": "22a3", "class": "0680"}} if switches else {}
    return {"pci__devices": Value({**gpus, **more}), "pci__gpus": Value(list(gpus))}


def test_a_bare_host_gets_all_locked_versions(wish):
    found = decide.decide(bare(), wish, lock())
    assert (found.driver, found.wanted.locked_as) == (DRIVER, "debian-12-x86_64")
    assert found.wanted.choices == {"modules": "open", "build": "dkms", "fabric": "nvswitch", "rdma": "inbox"}
    assert found.wanted.parts["driver"].packages == ("nvidia-driver-cuda", "nvidia-kernel-open-dkms")
    assert found.wanted.parts["driver"].needs == ("linux-headers-6.8.0-85-generic",)
    assert ("nvidia-driver-cuda", "", f"{DRIVER}-1") in found.changes()
    given = found.variables()
    assert [each["name"] for each in given["nodetune_repositories"]] == ["cuda"]
    assert given["nodetune_parts"] == list(wish.parts)
    assert given["nodetune_versions"] == dict(locked().packages)
    assert given["nodetune_facts"] == {"gpus": 8, "nvswitch": True}


def test_a_host_that_has_it_all_is_changed_in_nothing(wish):
    found = decide.decide(running(), wish, lock())
    assert found.changes() == []
    assert found.held == locked()


def test_what_a_host_has_in_another_version_is_named_with_both(wish):
    found = decide.decide(running(), wish, lock(NEWER))
    assert ("nvidia-fabricmanager", "580.159.04-1", "580.178.04-1") in found.changes()
    assert found.held.driver == DRIVER


def test_a_host_of_the_rhel_family_goes_by_its_major_version(wish):
    packages = package_data.load("rhel-9")
    rhel = decide.wanted(bare(release=ROCKY), wish)
    assert (rhel.system, rhel.manager, rhel.locked_as) == ("rhel-9", "dnf", "rhel-9-x86_64")
    assert [each["name"] for each in rhel.repositories] == ["cuda-rhel"]
    assert rhel.parts["driver"].packages == ("nvidia-driver-cuda", "kmod-nvidia-open-dkms")
    assert packages.manager == "dnf"


@pytest.mark.parametrize(
    ("ids", "modules"), [(["2335"], "open"), (["1eb8"], "open"), (["1db4"], "proprietary"), (["15f8"], "proprietary"), (["2901"], "open")]
)  # fmt: skip
def test_open_kernel_modules_are_for_turing_and_newer(wish, ids, modules):
    assert decide.wanted(bare(**with_devices(*ids)), wish).choices["modules"] == modules


@pytest.mark.parametrize(
    ("ids", "modules", "says"),
    [
        (["2901"], "proprietary", "GPU 10de:2901 supports only the open kernel modules"),
        (["2342"], "proprietary", "GPU 10de:2342 supports only the open kernel modules"),
        (["1db4"], "open", "GPU 10de:1db4 is older than Turing"),
        (["1db4", "2901"], "auto", "which do not support the others"),
    ],
)
def test_kernel_modules_that_no_gpu_there_takes_are_refused(tmp_path, ids, modules, says):
    wish = site(tmp_path, SITE.replace('branch: "580"', f'branch: "580", modules: {modules}'))
    with pytest.raises(HostRefusedError, match=says):
        decide.wanted(bare(**with_devices(*ids)), wish)


def test_fabric_manager_follows_nvswitches_and_nvlsm_blackwell(wish):
    plain = decide.wanted(bare(**with_devices("2331")), wish)
    assert "fabric-manager" not in plain.parts
    hopper = decide.wanted(bare(**with_devices("2335", switches=True)), wish)
    assert hopper.parts["fabric-manager"].packages == ("nvidia-fabricmanager", "libnvidia-nscq")
    blackwell = decide.wanted(bare(**with_devices("2901")), wish)
    assert {"nvlsm", "libnvsdm"} <= set(blackwell.parts["fabric-manager"].packages)
    assert blackwell.parts["fabric-manager"].own_version == ("nvlsm",)


def test_nccl_of_a_path_comes_from_no_package(tmp_path):
    wish = site(tmp_path, SITE + "  nccl: {path: /sw/nccl}\n")
    parts = decide.wanted(bare(), wish).parts
    assert "driver" in parts
    assert "nccl" not in parts


# Left alone


def test_a_host_without_a_gpu(wish):
    assert "no NVIDIA GPU" in str(refused(bare(**with_devices()), wish))


def test_a_system_that_there_is_no_data_for(wish):
    sles = {"id": "sles", "version": "15.6", "like": ["suse"], "name": "SUSE Linux Enterprise Server 15 SP6"}
    told = str(refused(bare(host__os=Value(sles)), wish))
    assert told.startswith("SUSE Linux Enterprise Server 15 SP6 is not supported: supported systems are debian-12")


def test_rhel_8_is_refused_with_the_reason(wish):
    alma = {"id": "almalinux", "version": "8.10", "like": ["rhel"], "name": "AlmaLinux 8.10 (Cerulean Leopard)"}
    told = str(refused(bare(host__os=Value(alma)), wish))
    assert told.startswith(
        "AlmaLinux 8.10 (Cerulean Leopard) cannot be provisioned: dnf's library is there for Python 3.6"
    )


@pytest.mark.parametrize(
    ("pythons", "says"),
    [
        ({"/usr/bin/python3": "3.6"}, "/usr/bin has 3.6: install one"),
        ({"/usr/bin/python3": "3.6", "/usr/bin/python3.8": "3.8"}, "/usr/bin has 3.6, 3.8: install one"),
        ({}, "/usr/bin has none: install one"),
    ],
)
def test_a_host_whose_pythons_cannot_run_the_guard(tmp_path, pythons, says):
    guarded = site(tmp_path, SITE + "  guard: observe\n")
    told = str(refused(bare(host__pythons=Value(pythons)), guarded))
    assert told == f"the guard needs Python 3.9 or newer, and {says}, or remove guard from the site file"


def test_the_python_of_rhel_9_can_run_the_guard(tmp_path):
    guarded = site(tmp_path, SITE + "  guard: observe\n")
    rhel = {"/usr/bin/python3": "3.9"}
    assert decide.decide(bare(host__pythons=Value(rhel)), guarded, lock()).host == "gpu1"
    newer = {"/usr/bin/python3": "3.6", "/usr/bin/python3.11": "3.11"}
    assert decide.decide(bare(host__pythons=Value(newer)), guarded, lock()).host == "gpu1"


def test_a_fedora_is_no_rhel(wish):
    fedora = {"id": "fedora", "version": "42", "like": ["fedora"], "name": "Fedora"}
    assert "not supported" in str(refused(bare(host__os=Value(fedora)), wish))


def test_a_login_that_is_not_root(wish):
    facts = bare()
    facts.about["uid"] = 1000
    assert "--become" in str(refused(facts, wish))


def test_a_container(wish):
    assert "container" in str(refused(bare(host__container=Value(True)), wish))


@pytest.mark.parametrize(
    ("planted", "says"),
    [
        ({"packages__file__/usr/bin/nvidia-uninstall": Value(True)}, "NVIDIA's runfile installer (/usr/bin/nvidia-uninstall)"),
        ({"packages__file__/run/nvidia/driver/usr": Value(True)}, "the GPU Operator's driver container"),
        (
            {"packages__installed": Value({"libcuda1": {"version": "535.1-1~deb12u1", "maker": "Debian NVIDIA Maintainers <x>"}})},
            "Debian's own driver packages (libcuda1)",
        ),
    ],
)  # fmt: skip
def test_a_foreign_driver_is_left_alone_and_named(wish, planted, says):
    told = refused(bare(**planted), wish)
    assert says in str(told)
    assert "nothing was changed" in str(told)
    assert "remove it first" in str(told)
    assert not told.unknown


def test_the_same_package_names_from_nvidia_are_ours(wish):
    ours = {"libcuda1": {"version": "580.159.04-1", "maker": "NVIDIA CORPORATION <cudatools@nvidia.com>"}}
    assert decide.decide(bare(packages__installed=Value(ours)), wish, lock()).driver == DRIVER


@pytest.mark.parametrize("planted", ["running", "module"])
def test_a_driver_that_no_package_brought_is_left_alone(wish, planted):
    given = {
        "running": {"packages__running_driver": Value({"version": "570.1", "open": True})},
        "module": {"packages__module__nvidia": Value({"file": "/lib/modules/6/extra/nvidia.ko", "version": ""})},
    }[planted]
    assert "does not come from an NVIDIA package" in str(refused(bare(**given), wish))


HAND_BUILT = {
    "packages__running_driver": Value({"version": "570.1", "open": True}),
    "packages__module__nvidia": Value({"file": "/lib/modules/6/extra/nvidia.ko", "version": "570.1"}),
}
TOOLKIT = {"nvidia-container-toolkit": {"version": "1.18.1-1", "maker": MAKER}}


def test_the_container_toolkit_does_not_make_a_driver_ours(wish):
    told = refused(bare(**HAND_BUILT, packages__installed=Value(TOOLKIT)), wish)
    assert "does not come from an NVIDIA package (version 570.1 is loaded)" in str(told)


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("nvidia-dkms-570", "Lambda Labs <x@lambdalabs.com>"),
        ("nvidia-driver-570", "Lambda Labs <x@lambdalabs.com>"),
        ("nvidia-open-kmod", "AlmaLinux Packaging Team <packager@almalinux.org>"),
        ("kmod-gcc-nvidia", "somebody"),
    ],
)
def test_a_driver_package_of_any_other_maker_is_left_alone(wish, name, maker):
    ours = {"nvidia-driver-cuda": {"version": "580.105.08-1", "maker": MAKER}}
    other = {name: {"version": "580.105.08-2", "maker": maker}}
    told = str(refused(bare(**HAND_BUILT, packages__installed=Value({**TOOLKIT, **ours, **other})), wish))
    assert f"the installed driver comes from another source: {maker} ({name})" in told
    assert "nothing was changed" in told


def test_a_lock_that_lacks_the_system_or_a_package_is_refused(wish):
    assert "no versions for debian-12-x86_64: nodetune lock -i gpu1 adds it" in str(refused(bare(), wish, {}))
    some = {name: of for name, of in locked().packages.items() if name != "libnvidia-nscq"}
    told = str(refused(bare(), wish, {"debian-12-x86_64": Versions(DRIVER, some)}))
    assert "no version of libnvidia-nscq for debian-12-x86_64" in told


def test_an_exporter_of_a_container_is_left_alone(tmp_path):
    wish = site(tmp_path, SITE + "  parts: [driver, dcgm, dcgm-exporter]\n")
    package = {"datacenter-gpu-manager-exporter": "4.8.2-1"}
    runs = {"services__processes": Value({"dcgm-exporter": 1})}
    told = (
        "a dcgm-exporter runs there that is not of NVIDIA's packages: stop it, or remove dcgm-exporter from the parts"
    )
    assert told in str(refused(bare(**runs), wish, lock(**package)))
    ours = running(installed=locked(**package).packages, **runs)
    assert decide.decide(ours, wish, lock(**package)).changes() == []
    free = decide.decide(bare(services__processes=Value({})), wish, lock(**package))
    assert ("datacenter-gpu-manager-exporter", "", "4.8.2-1") in free.changes()


def test_gpudirect_storage_is_for_open_modules_and_where_p2pdma_does_not_do_its_work(tmp_path):
    wish = site(tmp_path, SITE + "  parts: [driver, gds]\n")
    versions = lock(**dict.fromkeys(("nvidia-gds", "nvidia-fs", "nvidia-fs-dkms"), "1-1"))
    none, p2pdma = (Absent("no file"), Value({"p2pdma": True, "compat_mode": True}))
    assert ("nvidia-fs-dkms", "", "1-1") in decide.decide(bare(block__gds=none), wish, versions).changes()
    told = str(refused(bare(block__gds=p2pdma), wish, versions))
    assert (
        "PCI P2PDMA there (use_pci_p2pdma in /etc/cufile.json), which needs no nvidia-fs: remove gds from the" in told
    )
    old = bare(block__gds=none, **with_devices("1db6"))
    assert "nvidia-fs needs the open kernel modules" in str(refused(old, wish, versions))


def test_a_lock_of_another_branch(wish):
    assert "the lock has driver 590.1.1 but the site file requires branch 580" in str(
        refused(bare(), wish, lock("590.1.1"))
    )


def test_a_branch_older_than_the_names_that_are_known(tmp_path):
    wish = site(tmp_path, SITE.replace("580", "535"))
    assert "driver branch 535 is not supported on debian-12: use 580 or newer" in str(refused(bare(), wish))


def test_gpus_in_use():
    busy = Each({"GPU0": Value([{"pid": 7, "name": "python"}])})
    told = results.users(running(gpu__compute_running_processes=busy))
    assert told.message == "its GPUs are in use by python (7): stop that first, or use --drain slurm"
    assert results.users(running()) is None


def test_without_nvml_the_holders_of_the_devices_are_the_users():
    """After an exchange that was interrupted before its reboot: the library is newer than the loaded module."""
    unknown = Unread("NVML: driver/library version mismatch")
    mismatch = dict.fromkeys(("gpu__nvml", "gpu__compute_running_processes"), unknown)
    assert results.users(running(**mismatch)) is None
    assert "train.py (9)" in results.users(running(**mismatch, packages__device_users=Value([[9, "train.py"]]))).message
    told = results.users(running(**mismatch, packages__device_users=Unread("needs root")))
    assert (told.code, "needs root" in told.message) == (INCOMPLETE, True)


def test_a_fact_that_cannot_be_read_is_no_reason_to_go_on(wish):
    told = refused(bare(packages__installed=Unread("dpkg-query failed")), wish)
    assert told.unknown
    assert "dpkg-query failed" in str(told)


def test_facts_of_an_audit_are_not_enough(wish):
    """They hold nothing of packages."""
    facts = records.facts()
    assert refused(type(facts)(facts.host, {**facts.facts, "host.os": Value(DEBIAN)}, facts.about), wish).unknown


# The driver that runs


def test_a_running_driver_of_another_version_needs_a_reboot():
    assert running_driver.takes_reboot(bare(), DRIVER) == "nouveau is loaded"
    assert running_driver.takes_reboot(running(), DRIVER) == ""
    assert running_driver.takes_reboot(running(), NEWER) == "driver 580.159.04 is loaded, 580.178.04 is installed"
    unloaded = running(packages__running_driver=Absent(), gpu__driver_version=Absent(), modules__loaded=Value([]))
    assert running_driver.takes_reboot(unloaded, DRIVER) == f"driver {DRIVER} is installed but not loaded"


def test_a_site_without_a_driver_reboots_for_nouveau_only():
    assert running_driver.takes_reboot(bare(modules__loaded=Value([])), "") == ""


def test_a_driver_is_up_when_it_is_the_wanted_one_and_answers():
    assert running_driver.not_up(running(), DRIVER) == ""
    assert "after the reboot: nouveau is loaded" in running_driver.not_up(bare(), DRIVER)
    assert "does not respond: gpu.nvml: NVML: no" in running_driver.not_up(
        running(gpu__nvml=Unread("NVML: no")), DRIVER
    )


# The data


def test_every_pattern_of_the_data_is_asked_of_hosts():
    asked = package_data.facts()
    assert len(package_data.known()) > 1
    for system in package_data.known():
        data = package_data.load(system)
        assert data.family
        patterns = [*data.family, *(pattern for other in data.others for pattern in other.get("packages", ()))]
        assert {f"packages.like.{pattern}" for pattern in patterns} <= asked
        assert {f"packages.file.{path}" for other in data.others for path in other.get("files", ())} <= asked


@pytest.mark.parametrize("system", package_data.known())
def test_every_system_has_every_part(system):
    choices = {"modules": "open", "build": "dkms", "fabric": "nvlink5", "rdma": "inbox"}
    needed = {part: package_data.load(system).needed(part, choices, "580", "6.1").packages for part in PARTS}
    assert len(needed) > 3
    assert [part for part, packages in needed.items() if not packages] == []
