"""The block collector: disks and their queues, NVMe controllers and their health log, software RAID, cuFile."""

import pytest

from nodetune.probe import block

QUEUE = {"scheduler": "[none] mq-deadline\n", "read_ahead_kb": "128\n", "nr_requests": "1023\n", "rotational": "0\n"}


@pytest.fixture
def disk(tree):
    def plant(name, folder="/sys/devices/virtual/block", **files):
        queue = {f"{folder}/{name}/queue/{attribute}": text for attribute, text in {**QUEUE, **files}.items()}
        return tree({**queue, f"{folder}/{name}/size": "2048\n", f"/sys/block/{name}": f"-> ../..{folder}/{name}"})

    return plant


def test_each_disk_has_its_scheduler_and_read_ahead(disk, collect):
    disk("nvme0n1")
    disk(
        "sda",
        "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block",
        scheduler="none [mq-deadline] bfq\n",
        rotational="1\n",
    )
    facts = collect("block")
    assert facts["block.scheduler"]["each"] == {"nvme0n1": {"value": "none"}, "sda": {"value": "mq-deadline"}}
    assert facts["block.read_ahead_kb"]["each"]["sda"] == {"value": 128}
    disks = facts["block.disks"]["value"]
    assert (disks["nvme0n1"]["type"], disks["nvme0n1"]["rotational"], disks["nvme0n1"]["size_bytes"]) == (
        "nvme",
        False,
        1 << 20,
    )
    assert (disks["sda"]["type"], disks["sda"]["rotational"]) == ("sata", True)


def test_a_queue_without_a_scheduler_shows_the_word_it_has(disk, collect):
    disk("nvme0n1", scheduler="none\n")
    assert collect("block")["block.scheduler"]["each"]["nvme0n1"] == {"value": "none"}


def test_loop_devices_and_hidden_paths_are_no_disks(disk, tree, collect):
    disk("loop0")
    disk("dm-0")
    disk("nvme0c0n1")
    tree({"/sys/devices/virtual/block/nvme0c0n1/hidden": "1\n"})
    assert collect("block")["block.disks"] == {"value": {}}


def test_an_array_tells_its_missing_disks_and_what_it_does(tree, collect):
    tree(
        {
            "/sys/block/md0/md/level": "raid1\n",
            "/sys/block/md0/md/array_state": "clean\n",
            "/sys/block/md0/md/degraded": "1\n",
            "/sys/block/md0/md/sync_action": "recover\n",
            "/sys/block/md1/md/level": "raid0\n",
            "/sys/block/md1/md/array_state": "clean\n",
        }
    )
    arrays = collect("block")["block.raid"]["each"]
    assert arrays["md0"] == {"value": {"level": "raid1", "state": "clean", "degraded": 1, "action": "recover"}}
    assert arrays["md1"] == {"value": {"level": "raid0", "state": "clean", "degraded": None, "action": None}}


@pytest.fixture
def controller(tree):
    def plant(**files):
        described = {"state": "live\n", "transport": "pcie\n", "model": "Drive  \n", "firmware_rev": "1.0\n", **files}
        return tree(
            {
                **{f"/sys/class/nvme/nvme0/{name}": text for name, text in described.items()},
                "/sys/class/nvme/nvme0/device": "-> ../../../0000:41:00.0",
            }
        )

    return plant


def test_a_controller_has_a_state_and_its_pci_address(controller, collect):
    controller()
    assert collect("block")["block.nvme"] == {
        "value": {
            "nvme0": {"state": "live", "transport": "pcie", "model": "Drive", "firmware": "1.0", "bdf": "0000:41:00.0"}
        }
    }


def test_the_health_log_is_asked_for_only_by_name(controller, collect):
    controller()
    facts = collect("block", ["disks"])
    assert "block.disks" in facts
    assert "block.smart" not in facts


def test_a_drive_that_refuses_the_command_is_unread(controller, tree, collect):
    controller()
    tree({"/dev/nvme0": "-> /dev/null"})  # takes no NVMe commands
    fact = collect("block", ["smart"])["block.smart"]["each"]["nvme0"]
    assert "inappropriate ioctl" in fact["unread"]


def test_a_controller_that_is_resetting_is_not_asked(controller, collect):
    controller(state="resetting\n")  # there is no /dev/nvme0: asking would say so
    assert collect("block", ["smart"])["block.smart"]["each"]["nvme0"] == {"unread": "the controller is resetting"}


def test_a_remote_drive_has_no_health_log_of_its_own(controller, collect):
    controller(transport="tcp\n")
    assert collect("block", ["smart"])["block.smart"]["each"]["nvme0"] == {"absent": "not a local drive"}


def test_the_health_log_is_read_by_the_specification():
    log = bytearray(512)
    log[0], log[3], log[4], log[5] = 0x04, 90, 10, 17
    log[160:176] = (70000).to_bytes(16, "little")
    log[144:160], log[176:192] = b"\xff" * 16, b"\xff" * 16  # power losses, entries of the error log
    assert block.parse_health(bytes(log)) == {
        "critical_warning": 4,
        "spare_percent": 90,
        "spare_threshold_percent": 10,
        "used_percent": 17,
        "media_errors": 70000,
    }


def test_the_command_has_the_size_that_the_kernel_expects():
    assert block.COMMAND.size == block.ADMIN_COMMAND >> 16 & 0x3FFF


def test_cufile_switches_are_read_past_comments(tree, collect):
    tree(
        {
            "/etc/cufile.json": '{\n  // "allow_compat_mode": false,\n  "properties": {"allow_compat_mode": true,\n "use_pci_p2pdma": true}}\n'
        }
    )
    assert collect("block")["block.gds"] == {"value": {"compat_mode": True, "p2pdma": True}}


def test_a_host_without_cufile_has_no_settings(tree, collect):
    tree({"/etc/": None})
    assert "absent" in collect("block")["block.gds"]


# --- udev rules

RULES = "/etc/udev/rules.d/60-io.rules"
TWO_DISKS = {
    f"/sys/block/{name}/queue/{file}": text
    for name, rotational in (("nvme0n1", "0"), ("sda", "1"))
    for file, text in (("scheduler", "none [mq-deadline]"), ("rotational", rotational))
}


def rule(tree, collect, text, **more):
    tree({**TWO_DISKS, RULES: text, **more})
    return {
        name: fact.get("value")
        for name, fact in collect("block", ["scheduler_rule"])["block.scheduler_rule"]["each"].items()
    }


def test_the_rule_that_set_a_scheduler_is_named_for_its_disks(tree, collect):
    text = '# fast\nACTION=="add|change", KERNEL=="nvme*n*", \\\n ATTR{queue/scheduler}="mq-deadline"\n'
    found = rule(tree, collect, text)
    assert found == {"nvme0n1": {"value": "mq-deadline", "file": RULES, "line": 2}, "sda": None}


def test_the_last_rule_for_a_disk_decides(tree, collect):
    kernel = 'KERNEL=="sd*|nvme*", ATTR{queue/rotational}=="0", ATTR{queue/scheduler}="mq-deadline"\n'
    later = {"/usr/lib/udev/rules.d/70-b.rules": 'KERNEL=="nvme*", ATTR{queue/scheduler}="none"\n'}
    assert rule(tree, collect, kernel) == {"nvme0n1": {"value": "mq-deadline", "file": RULES, "line": 1}, "sda": None}
    last = {"value": "none", "file": "/usr/lib/udev/rules.d/70-b.rules", "line": 1}
    assert rule(tree, collect, kernel, **later) == {"nvme0n1": last, "sda": None}


def test_a_rule_for_disks_alone_is_ours_or_one_like_it(tree, collect):
    text = 'ENV{DEVTYPE}=="disk", KERNEL=="nvme*n*", ATTR{queue/scheduler}="none"\nENV{DEVTYPE}!="disk", ATTR{queue/scheduler}="bfq"\n'
    assert rule(tree, collect, text) == {"nvme0n1": {"value": "none", "file": RULES, "line": 1}, "sda": None}


def test_the_rule_that_set_a_read_ahead_is_named(tree, collect):
    now = {f"/sys/block/{name}/queue/read_ahead_kb": "128" for name in ("nvme0n1", "sda")}
    tree({**TWO_DISKS, **now, RULES: 'KERNEL=="nvme*", ATTR{queue/read_ahead_kb}="128"\n'})
    found = collect("block", ["read_ahead_rule"])["block.read_ahead_rule"]["each"]
    assert found["nvme0n1"] == {"value": {"value": "128", "file": RULES, "line": 1}}
    assert "absent" in found["sda"]


def test_a_rule_that_only_udev_can_judge_is_not_named(tree, collect):
    text = 'ENV{ID_MODEL}=="X", ATTR{queue/scheduler}="mq-deadline"\n'
    assert rule(tree, collect, text) == {"nvme0n1": None, "sda": None}


def test_a_drive_tells_its_serial_number(tree, collect):
    tree({"/sys/class/nvme/nvme0/serial": "S64GNE0R123456    \n", "/sys/class/nvme/nvme1/state": "live\n"})
    found = collect("block")["block.serial"]["each"]
    assert found["nvme0"] == {"value": "S64GNE0R123456"}
    assert "absent" in found["nvme1"]
