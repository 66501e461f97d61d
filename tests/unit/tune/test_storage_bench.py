"""Storage as a subject of tuning: which disk a folder is on, what is tried there, and what is proposed."""

import random

import pytest
import yaml

from nodetune.api.model import Absent, HostFacts, Value
from nodetune.config import site
from nodetune.hosts.target import Target
from nodetune.tune import study
from nodetune.tune.benches import kernel_settings
from nodetune.tune.benches.storage import StorageBench, StorageRequest, mount_of
from nodetune.tune.model import BenchError

QUEUE = "/sys/block/nvme0n1/queue"
ROOT = {"type": "ext4", "source": "/dev/vda1", "device": "254:1", "disk": "vda"}
DATA = {"type": "xfs", "source": "/dev/nvme0n1", "device": "259:0", "disk": "nvme0n1", "options": ["rw"]}
SHARE = {"type": "nfs4", "source": "store:/data", "device": "0:51", "disk": None}
POINTS = {"/": ROOT, "/data": DATA, "/data/share": SHARE}
FOUND = {
    "host.kernel": "6.8.0-100-generic",
    "mounts.points": POINTS,
    "sysctl.vm.dirty_bytes": 0,
    "sysctl.vm.dirty_background_bytes": 0,
    f"sysfs.{QUEUE}/read_ahead_kb": 128,
    f"sysfs.{QUEUE}/nr_requests": 1023,
    f"file.{QUEUE}/scheduler": "[none] mq-deadline kyber\n",
    "sysfs./sys/class/bdi/0:51/read_ahead_kb": 128,
}


class Host:
    """A host that reads faster with more read-ahead, up to 2 MiB."""

    def __init__(self, mount=DATA, problem=None, direct=True):
        self.mount, self.problem, self.direct, self.items = mount, problem, direct, []
        self.dice = random.Random(5)

    def how(self, targets, plan_for, _reach):
        self.items = plan_for(targets[0])["measurements"]
        if self.problem:
            yield targets[0], {"record": {"measurement": "disk_buffered", "failed": self.problem}}
            return
        held = self.items[0]["options"].get("hold", {})
        ahead = next((int(text) for path, text in held.items() if path.endswith("read_ahead_kb")), 128)
        figures = {"disk_buffered": {"write": 9.0, "write_fsync": 2.0, "read": 1.0 + min(ahead, 2048) / 1024}}
        figures["disk"] = {"random_read": 300.0} if self.direct else {}
        about = {"device": self.mount["source"], "file_system": self.mount["type"]}
        for name, values in figures.items():
            for metric, value in values.items():
                record = {"measurement": name, "metric": metric, "subject": "/data", "unit": "GB/s", "better": "higher"}
                samples = [value * self.dice.gauss(1, 0.003)]
                yield targets[0], {"record": record | {"samples": samples, "about": about}}
        if not self.direct:
            yield targets[0], {"record": {"measurement": "disk", "skip": "fio is not installed: apt install fio"}}


def bench(host=None, folder="/data/x", missing=(), **wanted):
    def facts(_targets, names, _reach):
        known = {name: Value(FOUND[name]) for name in names if name in FOUND and name not in missing}
        return {"gpu01": HostFacts("gpu01", {name: Absent() for name in names} | known)}

    given = StorageRequest(folder, **{"allow_settings": True, **wanted})
    return StorageBench(Target("gpu01"), given, None, (host or Host()).how, facts)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"allow_settings": False}, "allow this with --allow-settings"),
        ({"folder": "data"}, "data: give the absolute path of a folder"),
        ({"host": Host(mount={"source": "tmpfs", "type": "tmpfs"})}, "/data/x: tmpfs (tmpfs) has no settings to tune"),
        ({"host": Host(problem="/data/x is not a folder: name one")}, "gpu01: /data/x is not a folder: name one."),
        ({"host": Host(problem="fio was killed")}, "gpu01: fio was killed: nodetune verify --disk /data/x says more"),
        ({"host": Host(direct=False), "objective": "random"}, "disk random_read could not be measured"),
    ],
    ids=["not-allowed", "relative", "tmpfs", "no-folder", "killed", "no-fio"],
)  # fmt: skip
def test_what_cannot_be_tuned_is_refused_in_one_line(given, why):
    with pytest.raises(BenchError) as refused:
        bench(**given)
    assert why in f"{refused.value}." and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("folder", "source"),
    [("/", "/dev/vda1"), ("/database", "/dev/vda1"), ("/data", "/dev/nvme0n1"), ("/data/share/", "store:/data")],
)
def test_a_folder_belongs_to_the_nearest_mount(folder, source):
    assert mount_of(POINTS, folder)["source"] == source


def test_choices_are_what_the_disk_has_and_is_not_set():
    found = {each.name: each.choices for each in bench().parameters}
    assert found == {
        "read_ahead_kb": (512, 2048, 8192),
        "nr_requests": (64, 256, 1024),
        "scheduler": ("mq-deadline", "kyber"),
        "dirty_limits": ("64MiB/256MiB", "256MiB/1GiB", "1GiB/4GiB"),
    }


def test_of_an_nfs_share_the_mount_has_its_own_read_ahead():
    made = bench(Host(mount=SHARE), folder="/data/share")
    assert [each.name for each in made.parameters] == ["read_ahead_kb", "dirty_limits"]
    held = kernel_settings.written(made.knobs, (("read_ahead_kb", 2048),))
    assert held == {"/sys/class/bdi/0:51/read_ahead_kb": "2048"}


def test_the_number_of_an_nfs_mount_is_never_proposed_as_it_changes_with_every_boot(tmp_path):
    found = bench(Host(mount=SHARE), folder="/data/share").proposal((("read_ahead_kb", 2048),))
    assert found == {"checks": {"nfs-read-ahead-small": {"accept": 2048}}}
    path = tmp_path / "site.yml"
    path.write_text(yaml.safe_dump(found))
    site.read([path])


def test_what_holds_by_default_belongs_to_the_result():
    assert bench().provenance()["defaults"] == {
        "read_ahead_kb": 128,
        "nr_requests": 1023,
        "scheduler": "[none] mq-deadline kyber\n",
        "vm.dirty_background_bytes": 0,
        "vm.dirty_bytes": 0,
    }


def test_a_disk_without_a_scheduler_is_tuned_without_it():
    made = bench(missing=(f"file.{QUEUE}/scheduler", f"sysfs.{QUEUE}/nr_requests"))
    assert [each.name for each in made.parameters] == ["read_ahead_kb", "dirty_limits"]


def test_both_measurements_of_a_trial_hold_the_same_files():
    host = Host()
    made = bench(host)
    assert all("hold" not in item["options"] for item in host.items)
    assert made.measure((("dirty_limits", "256MiB/1GiB"), ("read_ahead_kb", 512)), made.cases).counts
    assert [item["name"] for item in host.items] == ["disk_buffered", "disk"]
    for item in host.items:
        assert item["options"]["allow_settings"] is True
        assert item["options"]["hold"] == {
            "/sys/block/nvme0n1/queue/read_ahead_kb": "512",
            "/proc/sys/vm/dirty_background_bytes": str(256 << 20),
            "/proc/sys/vm/dirty_bytes": str(1 << 30),
        }


@pytest.mark.parametrize(("chosen", "requests"), [((), "1023"), ((("nr_requests", 64),), "64")])
def test_requests_follow_the_scheduler_that_resets_them(chosen, requests):
    host = Host()
    made = bench(host)
    assert made.measure((*chosen, ("scheduler", "kyber")), made.cases).counts
    held = host.items[0]["options"]["hold"]
    assert list(held.items()) == [(f"{QUEUE}/scheduler", "kyber"), (f"{QUEUE}/nr_requests", requests)]


def test_without_fio_reading_and_writing_are_tuned_all_the_same():
    assert [case.id for case in bench(Host(direct=False)).cases] == ["disk_buffered write_fsync", "disk_buffered read"]


def test_the_least_read_ahead_that_is_enough_is_found():
    outcome = study.tune(bench(), 3600.0)
    assert (outcome.state, outcome.setting) == (study.ACCEPTED, (("read_ahead_kb", 2048),))


def test_writing_is_no_better_with_anything_here():
    assert study.tune(bench(objective="write"), 3600.0).state == study.NOTHING


def test_the_proposal_is_a_site_file_that_replaces_the_checks(tmp_path):
    setting = (("dirty_limits", "1GiB/4GiB"), ("read_ahead_kb", 2048), ("scheduler", "kyber"))
    found = bench().proposal(setting)
    assert set(found["checks"]) == {
        "dirty-background-limit-high",
        "dirty-limit-high",
        "nvme-scheduler-set",
        "read-ahead-small",
    }
    assert {each.get("sysctl") or each["sysfs"]: each["set"] for each in found["add"]} == {
        f"{QUEUE}/read_ahead_kb": 2048,
        f"{QUEUE}/scheduler": "kyber",
        f"{QUEUE}/nr_requests": 1023,
        "vm.dirty_background_bytes": 1 << 30,
        "vm.dirty_bytes": 4 << 30,
    }
    path = tmp_path / "site.yml"
    path.write_text(yaml.safe_dump(found))
    site.read([path])
