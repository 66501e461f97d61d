"""From steps to changes: clients of NFS and Lustre, queues of network cards, and a module that may refuse to load."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nodetune.api import remedies
from nodetune.api.model import Absent, Each, HostFacts, Unread, Value
from nodetune.foundation.text import own_settings
from nodetune.remediation import host_changes
from tests.support.fixing import built, files, of_kind, refused
from tests.support.fixing import finding_of as step

UNIT = "/etc/systemd/system/nodetune-lustre.service"
SETTINGS = "/etc/nodetune/lustre.conf"


def host(own=None, **facts):
    found = {"host.os": Value({"id": "ubuntu", "like": ["debian"]}), "own.files": Value(own or {})}
    return HostFacts("gpu01", found | {name.replace("__", "."): fact for name, fact in facts.items()})


def handlers(changes):
    return [change["run"] for change in of_kind(changes, "run")]


def notes(facts, given):
    return " ".join(note for group in host_changes.build([given], facts)[0] for note in group.notes)


# --- NFS

NCONNECT = step(remedies.nfs_option("nconnect"), 8, ("/data",))


def placed(file="/etc/fstab", key=None, options=("rw",)):
    return {"file": file, "line": 3, "key": key, "options": list(options)}


def nfs(kernel="6.8.0-60-generic", configured=None, **sources):
    sources = {"/data": "server:/data", **{f"/{name}": source for name, source in sources.items()}}
    return host(
        host__kernel=Value(kernel),
        mounts__points=Value({place: {"type": "nfs4", "source": source} for place, source in sources.items()}),
        mounts__nfs=Value({place: {"protocol": "rdma" if place == "/rdma" else "tcp"} for place in sources}),
        mounts__configured=Value({"/data": placed()} if configured is None else configured),
    )


def test_an_nfs_option_is_written_at_its_mount_without_a_remount():
    changes = built(nfs(configured={"/data": placed(options=("rw", "nconnect=2", "hard"))}), NCONNECT)
    (edit,) = of_kind(changes, "edit")
    assert (edit["path"], edit["how"]) == ("/etc/fstab", "fstab_option")
    assert edit["with"] == {"mount_point": "/data", "option": "nconnect=8", "remove": ["nconnect=2"]}
    assert handlers(changes) == ["daemon-reload"]
    assert not of_kind(changes, "mount")


CACHES = step(remedies.nfs_option("caches"), "on", ("/data",))


def test_what_turns_the_caches_of_a_mount_off_is_removed():
    options = ("rw", "noac", "actimeo=0", "hard", "lookupcache=none", "acregmax=3")
    changes = built(nfs(configured={"/data": placed(options=options), "/b": placed()}, b="server:/b"), CACHES)
    (edit,) = of_kind(changes, "edit")
    assert edit["with"] == {
        "mount_point": "/data",
        "option": "async",
        "remove": ["noac", "actimeo=0", "lookupcache=none"],
    }
    assert handlers(changes) == ["daemon-reload"]
    assert "turns caches off for /data" in refused(nfs(configured={}), CACHES)
    assert "turns caches off for /data" in refused(nfs(configured={"/data": placed()}), CACHES)
    both = step(remedies.nfs_option("caches"), "on", ("/data", "/home"))
    assert "/home" in notes(nfs(configured={"/data": placed(options=options)}, home="server:/home"), both)


def test_every_mount_from_the_same_server_gets_the_option():
    all_of_them = {place: placed() for place in ("/data", "/home", "/other", "/rdma")}
    facts = nfs(configured=all_of_them, home="server:/home", other="elsewhere:/x", rdma="server:/rdma")
    changes = built(facts, NCONNECT)
    assert [edit["with"]["mount_point"] for edit in of_kind(changes, "edit")] == ["/data", "/home"]


def test_an_entry_of_an_automounters_map_is_edited_by_its_key():
    changes = built(nfs(configured={"/data": placed("/etc/auto.data", "*")}), NCONNECT)
    (edit,) = of_kind(changes, "edit")
    assert (edit["path"], edit["how"]) == ("/etc/auto.data", "automount_option")
    assert edit["with"] == {"key": "*", "option": "nconnect=8", "remove": []}
    assert handlers(changes) == ["daemon-reload", "reload autofs.service"]


@pytest.mark.parametrize("file", ["/etc/../root/.bashrc", "/root/auto.data", "/etc/auto.data\nx", "/etc/auto data"])
def test_a_map_outside_of_etc_is_left_alone(file):
    assert "automounter" in refused(nfs(configured={"/data": placed(file, "data")}), NCONNECT)


@pytest.mark.parametrize("kernel", ["4.18.0-553.el8_10.x86_64", "5.2.0", "unknown"])
def test_a_kernel_that_would_refuse_the_mount_is_left_alone(kernel):
    assert "nconnect came with Linux 5.3" in refused(nfs(kernel), NCONNECT)


def test_a_mount_that_no_file_makes_is_left_alone_and_told():
    assert "neither /etc/fstab nor a map" in refused(nfs(configured={}), NCONNECT)
    assert "/home" in notes(nfs(home="server:/home"), NCONNECT)
    unread = {"host.kernel": Value("6.8.0"), "mounts.configured": Unread("permission denied")}
    assert "permission denied" in refused(HostFacts("gpu01", {**nfs().facts, **unread}), NCONNECT)


ASYNC = step(remedies.mount_option("async"), "async", ("/data",))


@pytest.mark.parametrize(
    ("placed_in", "path", "given"),
    [
        (placed(), "/etc/fstab", {"mount_point": "/data", "option": "async", "remove": []}),
        (placed("/etc/auto.data", "*"), "/etc/auto.data", {"key": "*", "option": "async", "remove": ["sync"]}),
    ],
)
def test_an_option_of_all_file_systems_is_kept_where_the_mount_is_configured_and_remounted(placed_in, path, given):
    changes = built(nfs(configured={"/data": placed_in}), ASYNC)
    (edit,), (mount,) = of_kind(changes, "edit"), of_kind(changes, "mount")
    assert (edit["path"], edit["with"]) == (path, given)
    assert (mount["mount_point"], mount["option"]) == ("/data", "async")
    assert handlers(changes) == (["reload autofs.service"] if placed_in["key"] else [])


def read_ahead(kib, *places):
    return step(remedies.nfs_read_ahead(), kib, places)


def test_a_read_ahead_is_written_now_and_at_each_mount():
    first = built(host(), read_ahead(15360, "/data"))
    assert [each["change"] for each in first] == ["read_ahead", "file", "run"]
    assert (first[0]["mount_point"], first[0]["kib"]) == ("/data", 15360)
    second = files(built(host(own=files(first)), read_ahead(8192, "/sets")))
    (text,) = second.values()
    assert own_settings(text) == {"/data": "15360", "/sets": "8192"}


def test_udev_gets_the_read_ahead_of_a_device_from_where_it_is_mounted():
    (text,) = files(built(host(), read_ahead(15360, "/proc"))).values()
    program = re.search(r"PROGRAM=\"/bin/sh -c '(.*)'\",", text).group(1).replace("$$", "$")
    table = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    found = {fields[4]: fields[2] for fields in table}

    def asked(device):
        done = subprocess.run(["sh", "-c", program.replace("$kernel", device)], capture_output=True, text=True)
        return done.returncode, done.stdout.strip()

    assert asked(found["/proc"]) == (0, "15360")
    assert asked(next(device for place, device in found.items() if device != found["/proc"])) == (1, "")


@pytest.mark.parametrize("place", ["/a b", "/a'b", '/a"b', "/$(x)", "/a*", "relative", "/a\nb"])
def test_a_mount_point_that_a_shell_could_read_otherwise_is_left_alone(place):
    assert "mount point" in refused(host(), read_ahead(15360, place))


# --- Lustre

RPCS = step(remedies.lustre_param("osc.max_rpcs_in_flight"), 32, ("data",))
AHEAD = step(remedies.lustre_param("llite.max_read_ahead_mb"), 256, ("data",))
STATAHEAD = step(remedies.lustre_param("llite.statahead_max"), 32, ("data",))


def lustre(folder="/sys/fs/lustre", own=None, system="data"):
    known = Value({system: {"folder": folder, "devices": 2}})
    points = {"/lustre/data": {"type": "lustre"}, "/home": {"type": "nfs4"}}
    return host(own, lustre__osc=known, lustre__llite=known, mounts__points=Value(points))


def test_a_lustre_parameter_is_written_now_and_after_each_mount():
    changes = built(lustre(), RPCS, AHEAD, STATAHEAD)
    pattern = "/sys/fs/lustre/osc/data-OST*/max_rpcs_in_flight"
    assert [(one["path"], one["value"]) for one in of_kind(changes, "value")] == [
        (pattern, "32"),
        ("/sys/fs/lustre/llite/data-*/max_read_ahead_mb", "256"),
        ("/sys/fs/lustre/llite/data-*/statahead_max", "32"),
    ]
    assert f"w {pattern} - - - - 32\n" in files(changes)[SETTINGS]
    unit = files(changes)[UNIT].splitlines()
    assert "After=remote-fs.target lustre-data.mount" in unit
    assert "WantedBy=multi-user.target lustre-data.mount" in unit
    (enabled,) = of_kind(changes, "unit")
    assert (enabled["enabled"], enabled["active"]) == ("enabled", None)


def test_a_later_parameter_keeps_the_earlier_one():
    first = files(built(lustre(), RPCS))
    second = files(built(lustre(own=first), AHEAD))
    assert own_settings(second[SETTINGS]) == {
        "llite.max_read_ahead_mb": {"data": "256"},
        "osc.max_rpcs_in_flight": {"data": "32"},
    }


@pytest.mark.parametrize("settings", ['{"osc.x": {"data": "1"}}', '{"osc.max_rpcs_in_flight": {"a/../b": "1"}}'])
def test_what_nodetune_did_not_write_is_not_kept(settings):
    own = {SETTINGS: f"# settings: {settings}\n"}
    assert "which no check sets" in refused(lustre(own=own), RPCS)


def test_lustre_files_elsewhere_and_hostile_names_are_left_alone():
    assert "outside /sys/fs/lustre" in refused(lustre("/proc/fs/lustre"), RPCS)
    assert "outside /sys/fs/lustre" in refused(lustre(system="other"), RPCS)
    hostile = "x\nw /etc/passwd"
    given = step(remedies.lustre_param("osc.max_rpcs_in_flight"), 32, (hostile,))
    assert "written safely" in refused(lustre(system=hostile), given)
    assert "not a parameter" in refused(lustre(), step(remedies.lustre_param("../x.y"), 1, ("data",)))


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="needs systemd-tmpfiles")
def test_systemd_tmpfiles_writes_the_settings_to_all_targets(tmp_path):
    text = files(built(lustre(), RPCS))[SETTINGS].replace("/sys/fs/lustre", str(tmp_path / "lustre"))
    (tmp_path / "lustre.conf").write_text(text)
    targets = [
        tmp_path / "lustre/osc" / name for name in ("data-OST0000-osc-ff", "data-OST0001-osc-ff", "more-OST0000-osc-ff")
    ]
    for target in targets:
        target.mkdir(parents=True)
        (target / "max_rpcs_in_flight").write_text("8\n")
    subprocess.run(["systemd-tmpfiles", "--create", tmp_path / "lustre.conf"], check=True)
    assert [(target / "max_rpcs_in_flight").read_text().split()[0] for target in targets] == ["32", "32", "8"]


# --- queues of network cards

QUEUES = step(remedies.net_link("channels"), "local", ("eth0",))


def card(most=63, cpus=48):
    counts = {"combined_max": most, "combined": 1, "rx_max": 8, "rx": 1}
    return host(
        net__links=Value({"eth0": {"bdf": "0000:18:00.0"}}),
        net__channels=Each({"eth0": Value(counts)}),
        net__local_cpus=Each({"eth0": Value(cpus) if cpus else Absent()}),
    )


@pytest.mark.parametrize(("most", "cpus", "queues"), [(63, 48, 16), (8, 48, 8), (63, 4, 4)])
def test_queues_are_those_that_the_card_and_its_cpus_allow(most, cpus, queues):
    changes = built(card(most, cpus), QUEUES)
    assert [change["value"] for change in of_kind(changes, "link")] == [queues]
    assert f"\nCombinedChannels={queues}\n" in files(changes)["/etc/systemd/network/00-nodetune-eth0.link"]


def test_queues_not_known_or_not_combined_are_left_alone():
    assert "no combined queues" in refused(card(most=0), QUEUES)
    assert "are unknown" in refused(card(cpus=0), QUEUES)


# --- nvidia_peermem

PEERMEM = step(remedies.module("nvidia_peermem"), "loaded")


def test_peermem_is_loaded_only_where_it_was_built_against_rdma():
    assert of_kind(built(host(modules__depends__nvidia_peermem=Value(["ib_core", "nvidia"])), PEERMEM), "module")
    assert "does not load" in refused(host(modules__depends__nvidia_peermem=Value(["nvidia"])), PEERMEM)
    assert "has no module" in refused(host(modules__depends__nvidia_peermem=Absent()), PEERMEM)
    assert refused(host(modules__depends__nvidia_peermem=Unread("permission denied")), PEERMEM)
    assert of_kind(built(host(), step(remedies.module("nvidia_uvm"), "loaded")), "module")
