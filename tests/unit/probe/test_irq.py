"""The irq collector on planted machines."""

import json
import time

import pytest

from nodetune.probe import read

PCI = "/sys/bus/pci/devices"


def device(bdf, kind, driver, irqs, local="64-127", **more):
    folder = f"{PCI}/{bdf}"
    files = {
        f"{folder}/class": kind,
        f"{folder}/vendor": "0x15b3",
        f"{folder}/driver": f"-> ../../drivers/{driver}",
        f"{folder}/local_cpulist": local,
        f"{folder}/numa_node": "1",
        f"{folder}/irq": "0",
        **{f"{folder}/msi_irqs/{irq}": "msix" for irq in irqs},
        **{f"{folder}/{name}": content for name, content in more.items()},
    }
    for irq, cpu in irqs.items():
        files[f"/sys/kernel/irq/{irq}/actions"] = f"queue{irq}\n"
        files[f"/sys/kernel/irq/{irq}/per_cpu_count"] = "1,2,3\n"
        files[f"/proc/irq/{irq}/effective_affinity_list"] = f"{cpu}\n"
        files[f"/proc/irq/{irq}/smp_affinity_list"] = "0-127\n"
    return files


def devices(facts):
    return facts["irq.devices"]["value"]


def test_a_card_counts_its_remote_interrupts(tree, collect):
    tree(device("0000:18:00.0", "0x020000", "mlx5_core", {10: 64, 11: 65, 12: 3}, **{"net/eth0/mtu": "9000"}))
    card = devices(collect("irq"))["0000:18:00.0"]
    assert (card["kind"], card["name"], card["numa_node"], card["irqs"]) == ("nic", "eth0", 1, 3)
    assert (card["cpus"], card["cpu_count"], card["remote"]) == ("3,64-65", 3, 1)
    assert card["examples"] == [{"irq": 12, "action": "queue12", "effective": "3", "allowed": "0-127", "events": 6}]


def test_vectors_that_no_driver_asked_for_do_not_count(tree, collect):
    root = tree(device("0000:18:00.0", "0x020000", "mlx5_core", {10: 64, 11: 0}))
    (root / "sys/kernel/irq/11/actions").write_text("\n")
    assert devices(collect("irq"))["0000:18:00.0"]["irqs"] == 1


def test_queues_of_an_nvme_disk_are_managed_but_for_the_first(tree, collect):
    tree(device("0000:5b:00.0", "0x010802", "nvme", {20: 0, 21: 1, 22: 2}, **{"nvme/nvme0/state": "live"}))
    disk = devices(collect("irq"))["0000:5b:00.0"]
    assert (disk["name"], disk["irqs"], disk["managed"]) == ("nvme0", 3, 2)
    assert "remote" not in disk


def test_only_displays_that_nvidia_made_are_gpus(tree, collect):
    tree(
        {
            **device("0000:1b:00.0", "0x030200", "nvidia", {30: 64}, vendor="0x10de"),
            **device("0000:c2:00.0", "0x030000", "ast", {31: 0}),
        }
    )
    assert list(devices(collect("irq"))) == ["0000:1b:00.0"]


def test_a_device_that_a_guest_owns_is_left_out(tree, collect):
    tree(device("0000:18:00.0", "0x020000", "vfio-pci", {10: 0}))
    assert devices(collect("irq")) == {}


def test_a_managed_interrupt_elsewhere_is_not_counted(tree, collect):
    tree(
        {
            **device("0000:18:00.0", "0x020000", "mlx5_core", {10: 0}),
            "/sys/kernel/debug/irq/irqs/10": "dstate: 0x1\n  IRQD_AFFINITY_MANAGED\n",
        }
    )
    assert devices(collect("irq"))["0000:18:00.0"]["remote"] == 0


def test_a_kernel_without_the_effective_cpu_accuses_nobody(tree, collect):
    root = tree(device("0000:18:00.0", "0x020000", "mlx5_core", {10: 0}))
    (root / "proc/irq/10/effective_affinity_list").unlink()
    assert devices(collect("irq"))["0000:18:00.0"]["remote"] == 0


def queues(*queues, **more):
    """A card near CPUs 64-127. Each queue: its mask, and the CPU where it is."""
    files = device("0000:18:00.0", "0x020000", "mlx5_core", {10 + n: cpu for n, (_, cpu) in enumerate(queues)}, **more)
    return {**files, **{f"/proc/irq/{10 + n}/smp_affinity_list": mask for n, (mask, _) in enumerate(queues)}}


def test_an_idle_queue_is_where_its_new_mask_puts_it(tree, collect):
    tree(queues(("64", 0), ("65", 0), ("66-67", 0), ("68", 0)))
    card = devices(collect("irq"))["0000:18:00.0"]
    assert (card["remote"], card["cpus"], card["cpu_count"]) == (0, "64-68", 5)


def test_a_wrong_mask_counts_before_the_next_interrupt(tree, collect):
    tree(queues(("3", 64), ("65", 65)))
    card = devices(collect("irq"))["0000:18:00.0"]
    assert (card["remote"], card["cpus"]) == (1, "3,65")
    assert (card["examples"][0]["allowed"], card["examples"][0]["effective"]) == ("3", "64")


def test_a_queue_that_may_go_anywhere_counts_where_it_is(tree, collect):
    tree(queues(("0-127", 3), ("0-127", 64)))
    assert devices(collect("irq"))["0000:18:00.0"]["remote"] == 1


def test_a_queue_with_traffic_that_ignores_its_mask_is_remote(tree, collect, monkeypatch):
    root = tree(queues(("64", 0)))
    counter, counts = root / "sys/kernel/irq/10/per_cpu_count", iter(range(9))
    text = read.text_or

    def ticking(path, *rest):
        if path.endswith("per_cpu_count"):
            counter.write_text(f"{next(counts)},0\n")
        return text(path, *rest)

    monkeypatch.setattr(read, "text_or", ticking)
    card = devices(collect("irq"))["0000:18:00.0"]
    assert (card["remote"], card["cpus"]) == (1, "0")


def test_a_queue_that_moves_while_it_is_read_is_where_it_went(tree, collect, monkeypatch):
    root = tree(queues(("64", 0)))
    text = read.text_or

    def moving(path, *rest):
        if path.endswith("per_cpu_count"):
            (root / "sys/kernel/irq/10/per_cpu_count").write_text("1,1\n")
            (root / "proc/irq/10/effective_affinity_list").write_text("64\n")
        return text(path, *rest)

    monkeypatch.setattr(read, "text_or", moving)
    assert devices(collect("irq"))["0000:18:00.0"]["remote"] == 0


def test_a_card_with_one_line_instead_of_vectors_is_read(tree, collect):
    files = device("0000:03:00.0", "0x020000", "e1000", {})
    files.update(
        {
            f"{PCI}/0000:03:00.0/irq": "19",
            "/proc/irq/19/effective_affinity_list": "70",
            "/proc/irq/19/smp_affinity_list": "70",
        }
    )
    tree(files)
    assert devices(collect("irq"))["0000:03:00.0"]["cpus"] == "70"


@pytest.mark.parametrize("path", ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"])
def test_irqbalance_settings_of_both_families_are_read(tree, collect, path):
    tree({path: '# IRQBALANCE_ARGS="--no"\nIRQBALANCE_ARGS="--banmod=mlx5_core"\nIRQBALANCE_BANNED_CPULIST=0-3\n'})
    found = collect("irq")["irq.irqbalance"]["value"]
    assert (found["options"], found["IRQBALANCE_BANNED_CPULIST"], found["file"]) == ("--banmod=mlx5_core", "0-3", path)


def test_what_places_interrupts_at_boot_is_found(tree, collect):
    tree(
        {
            "/etc/rc.local": "#!/bin/sh\n# set_irq_affinity.sh\nexit 0\n",
            "/etc/systemd/system/multi-user.target.wants/tune.service": "[Service]\nExecStart=/opt/set_irq_affinity.sh eth0\n",
            "/etc/systemd/system/multi-user.target.wants/irqbalance.service": "[Unit]\nAfter=set_irq_affinity.service\n",
            "/etc/systemd/system/idle.service": "[Service]\nExecStart=/opt/set_irq_affinity.sh\n",
            "/etc/infiniband/openib.conf": "RUN_AFFINITY_TUNER=yes\n",
        }
    )
    assert collect("irq")["irq.static_affinity"]["value"] == [
        "/etc/systemd/system/multi-user.target.wants/tune.service",
        "/etc/infiniband/openib.conf",
    ]


def test_receive_packet_steering_is_counted_on_real_cards_only(tree, collect):
    net = "/sys/class/net"
    tree(
        {
            f"{net}/eth0/device/vendor": "0x15b3",
            f"{net}/eth0/queues/rx-0/rps_cpus": "00000000,000000ff\n",
            f"{net}/eth0/queues/rx-1/rps_cpus": "00000000,00000000\n",
            f"{net}/veth1/queues/rx-0/rps_cpus": "ff\n",
        }
    )
    assert collect("irq")["irq.rps"] == {"value": {"eth0": {"queues": 2, "steered": 1}}}


@pytest.mark.slow
def test_two_thousand_interrupts_stay_compact_and_quick(tree, collect):
    files = {}
    for card in range(16):
        irqs = {1000 + card * 128 + queue: queue for queue in range(128)}
        files.update(device(f"0000:{card:02x}:00.0", "0x020000", "mlx5_core", irqs))
    tree(files)
    start = time.process_time()
    facts = collect("irq")
    assert time.process_time() - start < 10
    assert len(json.dumps(facts)) < 20_000
