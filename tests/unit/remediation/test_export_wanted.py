"""The exported test: real testinfra sees a host before an apply of the exported role, and after it."""

import json
import re
import sys

import pytest

from nodetune.api import remedies
from nodetune.api.model import HostFacts, HostResult, Value
from nodetune.remediation import expected_state, export, plan
from tests.support import private_host
from tests.support.fixing import finding_of


@pytest.fixture
def host(tmp_path):
    with private_host.made(tmp_path) as made:
        yield made


def step(remedy, value, subjects=()):
    return finding_of(remedy, value, subjects, check=f"{remedy.target}-wrong")


STEPS = (
    step(remedies.sysctl("vm.swappiness"), 10),
    step(remedies.sysfs("/sys/kernel/mm/transparent_hugepage/enabled"), "madvise"),
    step(remedies.block_queue("scheduler"), "none", ("nvme0n1",)),
    step(remedies.docker_daemon("default-shm-size"), "16g"),
    step(remedies.nccl_conf("NCCL_IB_HCA"), "mlx5_0"),
    step(remedies.mount_option("noatime"), "noatime", ("/mnt",)),
    step(remedies.service("irqbalance"), "masked"),
)


def planned(name, steps=STEPS):
    on = Value({"active": "active", "enabled": "enabled"})
    facts = {"own.files": Value({}), "services.docker": on, "services.irqbalance": on, "nccl.settings": Value([])}
    made = plan.plan(HostResult(name, "ok", facts=HostFacts(name, facts), findings=steps))
    assert not made.left_out
    return made


def confirm(host, folder, *options):
    """What pytest says of the exported test: (passed, failed, skipped), its output."""
    done = host.run(
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-q",
        "-rs",
        folder / "test_wanted.py",
        "--hosts=local://",
        *options,
    )
    count = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout)}
    return [count.get(word, 0) for word in ("passed", "failed", "skipped")], done.stdout + done.stderr


@pytest.mark.slow
def test_testinfra_confirms_an_apply_of_the_exported_role(host, tmp_path):
    (tmp_path / "run/systemd/system").mkdir(parents=True)  # by this testinfra tells that systemd runs
    export.write(tmp_path / "out", [planned("localhost")])
    many = len(json.loads((tmp_path / "out/wanted.json").read_text())["sets"]["set-1"])
    assert many >= 10
    before, shown = confirm(host, tmp_path / "out")
    assert before == [0, many, 0], shown
    host.play(tmp_path / "out" / "apply.yml")
    after, shown = confirm(host, tmp_path / "out")
    assert after == [many, 0, 0], shown
    (tmp_path / "proc-sys/vm/swappiness").write_text("60\n")
    (tmp_path / "etc/nccl.conf").write_text("NCCL_IB_HCA=mlx5_9\n")
    changed, shown = confirm(host, tmp_path / "out")
    assert changed == [many - 2, 2, 0], shown


@pytest.mark.slow
def test_a_host_is_asked_for_its_own_set_alone(host, tmp_path):
    export.write(tmp_path / "out", [planned("a", STEPS[:1]), planned("localhost", STEPS[1:2])])
    (passed, failed, skipped), shown = confirm(host, tmp_path / "out")
    assert (passed, failed, skipped) == (0, 2, 2), shown
    assert "this host has set-2" in shown
    export.write(tmp_path / "other", [planned("a", STEPS[:1]), planned("b", STEPS[1:2])])
    (passed, failed, _), shown = confirm(host, tmp_path / "other")
    assert (passed, failed) == (0, 4)
    assert "name one by NODETUNE_SET=set-1" in shown


def test_what_testinfra_cannot_see_is_said_and_not_confirmed():
    changes = [{"change": "irqs"}, {"change": "gpu", "setting": "persistence_mode", "gpus": [0], "value": "enabled"}]
    found = expected_state.wanted([*changes, {"change": "run", "run": "daemon-reload"}])
    assert [(each["see"], each["what"]) for each in found] == [("nothing", "irqs"), ("nothing", "gpu persistence_mode")]


def test_of_two_changes_of_a_file_the_last_one_is_wanted():
    texts = [{"change": "file", "path": "/etc/x", "content": text, "mode": "0644"} for text in ("a", "b")]
    (found,) = expected_state.wanted(texts)
    assert found["with"]["texts"] == ["b"]
    (gone,) = expected_state.wanted([{"change": "file", "path": "/etc/x", "content": None}])
    assert (gone["see"], gone["with"]) == ("no_file", {"path": "/etc/x"})
