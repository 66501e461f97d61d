"""What the other tests rely on: that these machines are what they seem."""

import re
import socket
import subprocess
import sys
import time

import pytest

from tests.machines import place

GPUS = "lspci -D -d 10de:2335 | cut -d' ' -f1"


def numbers(text):
    return [int(word) for word in text.split()]


def test_each_numa_node_has_cpus_memory_an_adapter_and_a_drive(machine):
    assert machine.ssh("cat /sys/devices/system/node/node*/cpulist").stdout.split() == ["0-3", "4-7"]
    assert (
        min(numbers(machine.ssh("awk '/MemTotal/ {print $4}' /sys/devices/system/node/node*/meminfo").stdout)) > 400_000
    )
    assert numbers(
        machine.ssh("cat /sys/class/net/ens2/device/numa_node /sys/class/net/ens10/device/numa_node").stdout
    ) == [0, 1]
    assert sorted(numbers(machine.ssh("cat /sys/class/nvme/nvme*/device/numa_node").stdout)) == [0, 1]


def test_adapters_have_several_queues_and_movable_interrupts(machine):
    assert len(machine.ssh("ls -d /sys/class/net/ens2/queues/rx-*").stdout.split()) == 8
    interrupts = numbers(machine.ssh("ls /sys/class/net/ens2/device/msi_irqs").stdout)
    irq = f"/proc/irq/{interrupts[0]}/smp_affinity_list"
    machine.ssh(f"systemctl stop irqbalance; echo 2 > {irq}")
    assert machine.read(irq) == "2\n"
    machine.ssh("systemctl start irqbalance")


def test_rings_can_be_changed(machine):
    machine.ssh("ethtool -G ens11 rx 4096")
    current = machine.ssh("ethtool -g ens11").stdout.partition("Current")[2]
    assert re.search(r"RX:\s+4096", current)
    machine.ssh("ethtool -G ens11 rx 256")


def test_swap_and_the_data_file_system_are_on_as_fstab_says(machine):
    assert machine.ssh("swapon --show=NAME --noheadings").stdout.split() == ["/dev/vdb"]
    assert machine.ssh("findmnt -no FSTYPE /data").stdout == "ext4\n"
    assert "nvme" in machine.ssh("findmnt -no SOURCE /data").stdout
    assert re.findall(r"^UUID=\S+ (\S+)", machine.read("/etc/fstab"), re.MULTILINE) == ["/data", "none"]


def test_eight_gpus_are_on_the_pci_bus_four_on_each_node(machine):
    found = machine.ssh(f"for gpu in $({GPUS}); do cat /sys/bus/pci/devices/$gpu/numa_node; done").stdout
    assert numbers(found) == [0] * 4 + [1] * 4
    speeds = machine.ssh(f"for gpu in $({GPUS}); do cat /sys/bus/pci/devices/$gpu/current_link_speed; done").stdout
    assert set(speeds.splitlines()) == {"32.0 GT/s PCIe"}


def test_the_stand_in_for_the_driver_answers_for_eight_gpus(machine):
    asked = "import ctypes as c; l = c.CDLL('libnvidia-ml.so.1'); n = c.c_uint(); l.nvmlInit_v2()"
    code = f"{asked}; l.nvmlDeviceGetCount_v2(c.byref(n)); print(n.value)"
    assert machine.ssh(f'python3 -c "{code}"').stdout == "8\n"


def test_governors_can_be_changed(machine):
    policy = "/sys/devices/system/cpu/cpufreq/policy3"
    assert machine.read(f"{policy}/scaling_driver") == "acpi-cpufreq\n"
    before = machine.read(f"{policy}/scaling_governor").strip()
    machine.ssh(f"echo performance > {policy}/scaling_governor")
    assert machine.read(f"{policy}/scaling_governor") == "performance\n"
    assert machine.read(f"{policy}/scaling_cur_freq") == "3800000\n"
    machine.ssh(f"echo {before} > {policy}/scaling_governor")


def test_no_unit_failed(machine):
    assert machine.ssh("systemctl --failed --no-legend --plain").stdout == ""
    assert machine.ssh("systemctl is-system-running", check=False).stdout == "running\n"


def test_op_becomes_root_by_password_and_nosudo_does_not(machine):
    given = {"input": f"{place.OP_PASSWORD}\n", "check": False}
    assert machine.ssh("sudo -S -p '' id -u", user="op", **given).stdout == "0\n"
    assert machine.ssh("sudo -n id -u", user="op", check=False).returncode
    assert machine.ssh("sudo -S -p '' id -u", user="nosudo", **given).returncode


def test_docker_and_slurm_are_installed_and_off(machine):
    units = "docker.service docker.socket containerd slurmd slurmctld munge"
    assert set(machine.ssh(f"systemctl is-enabled {units}", check=False).stdout.split()) == {"disabled"}
    assert set(machine.ssh(f"systemctl is-active {units}", check=False).stdout.split()) == {"inactive"}


def test_clones_have_own_names_and_addresses_and_the_right_time(fleet, machine):
    other = fleet(1)[0]
    for each in (machine, other):
        assert each.ssh("hostname").stdout.strip() == each.name
        assert each.read("/sys/class/net/ens2/address").strip() == f"52:54:00:20:00:{each.number:02x}"
        assert abs(float(each.ssh("date +%s").stdout) - time.time()) < 60
    assert machine.ssh(f"ping -c 3 -W 10 10.10.0.{other.number}").returncode == 0
    fleet.stop(other)


def test_nodetune_audits_a_machine_by_the_inventory(machine, inventory_of):
    found = inventory_of([machine], user="op", ansible_become=True, ansible_become_password=place.OP_PASSWORD)
    command = [sys.executable, "-m", "nodetune", "audit", "-i", str(found)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert re.search(r"\d+ findings", told.stdout), told.stdout + told.stderr
    assert f"{machine.name}  8x H200, profile training+vm" in told.stdout


def test_a_reboot_keeps_files_and_takes_a_new_kernel_argument(fresh_machine):
    fresh_machine.write("/etc/sysctl.d/90-kept.conf", "vm.swappiness = 7\n")
    fresh_machine.write(
        "/etc/default/grub.d/kept.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX numa_balancing=disable"\n'
    )
    fresh_machine.ssh("update-grub")
    fresh_machine.reboot()
    assert "numa_balancing=disable" in fresh_machine.read("/proc/cmdline").split()
    assert fresh_machine.read("/proc/sys/vm/swappiness") == "7\n"
    assert fresh_machine.read("/sys/class/net/ens2/address").strip().endswith(f"{fresh_machine.number:02x}")
    fresh_machine.ssh("findmnt /data && swapon --show | grep -q vdb")


def test_the_grub_menu_is_the_one_that_update_grub_writes(machine):
    before = machine.read("/boot/grub/grub.cfg")
    machine.ssh("update-grub")
    assert machine.read("/boot/grub/grub.cfg") == before


def test_a_power_cut_keeps_what_was_flushed_and_forgets_memory(fresh_machine):
    before = fresh_machine.boot_id()
    fresh_machine.write("/etc/kept", "flushed\n")
    fresh_machine.write("/data/kept", "flushed\n")
    fresh_machine.write("/run/forgotten", "memory\n")
    fresh_machine.power_cut()
    assert not fresh_machine.running()
    fresh_machine.power_on()
    assert fresh_machine.boot_id() != before
    assert fresh_machine.read("/etc/kept") == fresh_machine.read("/data/kept") == "flushed\n"
    assert fresh_machine.ssh("cat /run/forgotten", check=False).returncode


def test_a_machine_that_cannot_start_says_why(fleet):
    free = fleet(1)[0]
    free.power_cut()
    with socket.create_server((free.address, free.port)), pytest.raises(place.FleetError, match="host forwarding"):
        free.power_on()
    fleet.stop(free)
