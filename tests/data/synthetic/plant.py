"""A host's files under /sys, /proc, /etc and /dev, as a mapping of path to content that is then written to a folder."""

# ruff: noqa: PLR0913, PLR0917  (a device has many attributes, and a description reads best in one line)

import os
import re
import struct
from pathlib import Path

from nodetune.onhost import cpu_list

ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0, 4, 5, 6


class Host:
    """What one machine holds. A content is text (a newline is added), bytes, `-> /target` (a link), None (a folder)."""

    def __init__(self, files):
        self.files = dict(files)
        self.next_irq = 64
        self.local = {}
        self.pids = {}

    def put(self, folder, **contents):
        """Files in one folder; names that are no Python names come as `**{...}`."""
        self.files.update({f"{folder}/{name}": str(content) for name, content in contents.items()})

    def write(self, root):
        for path, content in self.files.items():
            place = Path(root + path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                place.mkdir(exist_ok=True)
            elif isinstance(content, bytes):
                place.write_bytes(content)
            elif content.startswith("-> /"):
                place.symlink_to(os.path.relpath(root + content[3:], place.parent))
            else:
                place.write_text(content + "\n")
                place.chmod(
                    0o755 if "/bin/" in path or "/sbin/" in path else 0o666 if path.startswith("/dev/") else 0o644
                )

    # --- processors and memory

    def cpus(self, sockets, cores, threads, identity, states, frequency, nodes, page_kb=4):
        """CPU numbers as Linux gives them: the first threads of all cores, then the second ones.

        `identity`: lines of /proc/cpuinfo; `states`: idle state → (latency, disabled); `frequency`: files of cpufreq;
        `nodes`: NUMA node → its memory in kB (free: nine tenths); those beyond the sockets have no CPUs.
        """
        total, folder = sockets * cores * threads, "/sys/devices/system/cpu"
        self.put(folder, online=f"0-{total - 1}", present=f"0-{total - 1}", isolated="", nohz_full="(null)")
        self.put(folder + "/cpufreq/policy0", **frequency)
        for number, (name, (latency, disabled)) in enumerate(states.items()):
            self.put(f"{folder}/cpu0/cpuidle/state{number}", name=name, latency=latency, disable=disabled)
        told = []
        for cpu in range(total):
            core, socket = cpu % (sockets * cores), cpu % (sockets * cores) // cores
            siblings = ",".join(str(core + sockets * cores * thread) for thread in range(threads))
            mine = f"{folder}/cpu{cpu}"
            self.files[mine + "/cpufreq"] = f"-> {folder}/cpufreq/policy0"
            if cpu:
                self.files[mine + "/cpuidle"] = f"-> {folder}/cpu0/cpuidle"
            self.put(mine + "/topology", physical_package_id=socket, thread_siblings_list=siblings)
            place = f"physical id : {socket}\ncore id : {core % cores}\n" if "vendor_id" in identity else ""
            if "GenuineIntel" in identity:
                self.put(mine + "/thermal_throttle", core_throttle_count=0, package_throttle_count=0)
            told.append(f"processor : {cpu}\n{identity}\n{place}")
            self.local.setdefault(socket, []).append(cpu)
        self.files["/proc/cpuinfo"] = "\n".join(told)
        self._nodes(nodes, page_kb)

    def _nodes(self, nodes, page_kb):
        buddies, largest = [], 10 if page_kb == 4 else 13  # the order of the largest free block
        for node, size in nodes.items():
            place, free = f"/sys/devices/system/node/node{node}", size * 9 // 10
            cpus = cpu_list.fold(self.local.get(node, []))
            info = {
                "MemTotal": size,
                "MemFree": free,
                "Active(file)": size // 50,
                "Inactive(file)": 0,
                "SReclaimable": 0,
            }
            lines = "\n".join(f"Node {node} {name}: {amount} kB" for name, amount in info.items())
            far = " ".join("10" if other == node else "21" for other in nodes)
            self.put(place, cpulist=cpus, meminfo=lines, distance=far)
            if size:
                buddies.append(f"Node {node}, zone   Normal " + "5 " * largest + str(free // (page_kb << largest)))
        self.files["/proc/buddyinfo"] = "\n".join(buddies)

    def memory_modules(self, count, memory_kb, speed=4800):
        """The firmware's table of so many equal modules, as dmidecode reads it: SMBIOS type 17."""
        size = 1 << (memory_kb // count // 1024 - 1).bit_length()
        table = b""
        for number in range(count):
            body = bytearray(0x5C)
            struct.pack_into("<BBH8xHBBBBB", body, 0, 17, len(body), number, 0x7FFF, 9, 0, 1, 2, 0x22)
            struct.pack_into("<IH", body, 0x1C, size, speed)
            table += (
                bytes(body) + f"DIMM_{'ABCDEFGH'[number % 8]}{number // 8}\0NODE {number * 2 // count}\0\0".encode()
            )
        self.files["/sys/firmware/dmi/tables/DMI"] = table + struct.pack("<BBH2x", 127, 4, count)

    # --- PCI

    def pci(
        self, bdf, parents, what, node, driver, link=(32, 16), able=None, port=ENDPOINT, group=None, acs=None, mrrs=4096
    ):
        """One PCI function: `what` is "class vendor device", `link` and `able` (speed in GT/s, lanes). Returns its folder."""
        kind, vendor, device = what.split()
        root = (parents or [bdf])[0]
        folder = "/".join([f"/sys/devices/pci{root[:7]}", *parents, bdf])
        (speed, width), (best, widest) = link, able or link
        local = cpu_list.fold(self.local.get(node, []))
        self.put(folder, **{"class": f"0x{kind}00", "vendor": f"0x{vendor}", "device": f"0x{device}"})
        self.put(
            folder, numa_node=node, local_cpulist=local, aer_dev_correctable="", aer_dev_nonfatal="", aer_dev_fatal=""
        )
        self.put(folder, current_link_speed=f"{speed:.1f} GT/s PCIe", max_link_speed=f"{best:.1f} GT/s PCIe")
        self.put(folder, current_link_width=width, max_link_width=widest)
        self.files[folder + "/config"] = _configuration(port, mrrs, acs)
        self.files[f"/sys/bus/pci/devices/{bdf}"] = f"-> {folder}"
        if driver:
            self.files[f"/sys/bus/pci/drivers/{driver}"] = None
            self.files[folder + "/driver"] = f"-> /sys/bus/pci/drivers/{driver}"
        if group is not None:
            self.put(f"/sys/kernel/iommu_groups/{group[0]}", type=group[1])
            self.files[folder + "/iommu_group"] = f"-> /sys/kernel/iommu_groups/{group[0]}"
        return folder

    def irqs(self, folder, names, cpus):
        """An MSI vector for each name, going to the CPUs in turn."""
        for number, name in enumerate(names):
            irq, cpu, self.next_irq = self.next_irq, cpus[number % len(cpus)], self.next_irq + 1
            self.put(folder + "/msi_irqs", **{str(irq): "msix"})
            self.put(f"/sys/kernel/irq/{irq}", actions=name, per_cpu_count="0,0")
            self.put(f"/proc/irq/{irq}", effective_affinity_list=cpu, smp_affinity_list=cpu)

    # --- what hangs on PCI functions

    def net(self, name, folder, speed, mtu, up=True, kind=1, **files):
        """A network link on the PCI function in `folder` (None: a virtual one)."""
        place = f"{folder or '/sys/devices/virtual'}/net/{name}"
        self.files[f"/sys/class/net/{name}"] = f"-> {place}"
        self.put(
            place, type=kind, mtu=mtu, carrier=int(up), carrier_changes=2, speed=speed if up else -1, duplex="full"
        )
        counters = ("packets", "errors", "dropped")
        self.put(
            place + "/statistics",
            **{f"{way}_{name}": 10**9 * (name == "packets") for way in ("rx", "tx") for name in counters},
        )
        self.put(place, **files)
        if folder:
            self.files[place + "/device"] = f"-> {folder}"
            self.put(place + "/queues/rx-0", rps_cpus="0")

    def rdma(
        self, name, folder, rate, layer="InfiniBand", netdev=None, sm=1, state="4: ACTIVE", firmware="28.43.8002", **hw
    ):
        """An RDMA device with one port. `rate` as sysfs has it; `hw`: counters that are not zero."""
        place = f"{folder}/infiniband/{name}"
        port = place + "/ports/1"
        self.files[f"/sys/class/infiniband/{name}"] = f"-> {place}"
        self.files[place + "/device"] = f"-> {folder}"
        verbs = "uverbs" + name.rpartition("_")[2]
        self.put("/sys/class/infiniband_verbs/" + verbs, ibdev=name)
        self.put("/dev/infiniband", **{verbs: ""})
        self.put(place, fw_ver=firmware, board_id="MT_0000000838", hca_type="MT4129", node_type="1: CA")
        physical = "5: LinkUp" if "ACTIVE" in state else "3: Disabled"
        self.put(port, state=state, phys_state=physical, rate=rate, link_layer=layer, lid="0x2a", sm_lid=f"{sm:#x}")
        self.put(port + "/gids", **{"0": "fe80:0000:0000:0000:0000:0000:0000:0000"})
        for counter in ("port_rcv_packets", "port_xmit_packets"):
            self.put(port + "/counters", **{counter: 10**12})
        for counter in ("symbol_error", "link_downed", "port_rcv_errors", "link_error_recovery", "port_xmit_discards"):
            self.put(port + "/counters", **{counter: hw.get(counter, 0)})
        self.put(port + "/hw_counters", out_of_sequence=0, packet_seq_err=0, local_ack_timeout_err=0, out_of_buffer=0)
        if layer == "Ethernet":
            self.put(port + "/gid_attrs/types", **{"0": "IB/RoCE v1", "3": "RoCE v2"})
            self.put(port + "/gid_attrs/ndevs", **{"0": netdev, "3": netdev})
            self.put(port + "/gids", **{"3": "0000:0000:0000:0000:0000:ffff:c633:6407"})

    def disk(
        self, name, bdf_folder, size_gb, model, scheduler="[none] mq-deadline", rotational=0, read_ahead=128, number=0
    ):
        """An NVMe disk with its controller."""
        controller = re.sub(r"n\d+$", "", name)
        place = f"{bdf_folder}/nvme/{controller}"
        self.files[f"/sys/class/nvme/{controller}"] = f"-> {place}"
        self.put(place, state="live", transport="pcie", model=model, firmware_rev="GDC7302Q")
        self.files[place + "/device"] = f"-> {bdf_folder}"
        self.block(name, f"{place}/{name}", number, size_gb, scheduler, rotational, read_ahead)
        self.put(f"{place}/{name}/device", model=model)

    def block(self, name, place, number, size_gb, scheduler="none", rotational=0, read_ahead=128):
        self.files[f"/sys/block/{name}"] = f"-> {place}"
        self.files[f"/sys/class/block/{name}"] = f"-> {place}"
        self.files[f"/sys/dev/block/{number}"] = f"-> {place}"
        self.put(place, size=size_gb * 10**9 // 512)
        self.put(
            place + "/queue", scheduler=scheduler, rotational=rotational, read_ahead_kb=read_ahead, nr_requests=1023
        )

    # --- processes

    def process(self, pid, words, limits=None, status=""):
        """A child of init with its limits: item → "soft hard unit"."""
        self.files[f"/proc/{pid}/cmdline"] = "\0".join(words.split()).encode() + b"\0"
        comm = words.split()[0].rpartition("/")[2][:15]
        self.put(
            f"/proc/{pid}", comm=comm, stat=f"{pid} ({comm}) S 1 {pid}", status=f"Name:\t{comm}\nUid:\t0\t0\n{status}"
        )
        rows = [f"{title:<26}{setting}" for title, setting in (limits or {}).items()]
        self.put(f"/proc/{pid}", limits="\n".join(rows))


def _configuration(port, max_read_request, acs):
    """The words of PCI configuration space that are read: the PCI Express capability, and access control if any."""
    data = bytearray(0x108)
    struct.pack_into("<HHHHI", data, 0, 0x10DE, 0, 0, 0x10, 0)
    data[0x34], data[0x40] = 0x40, 0x10
    control = (max_read_request.bit_length() - 8) << 12 | 1 << 5 | 0x10
    struct.pack_into("<HIH", data, 0x42, port << 4 | 2, 2, control)
    if acs is not None:
        struct.pack_into("<IHH", data, 0x100, 0x0001000D, 0x5F, acs)
    return bytes(data)


CHASSIS = ("Power Overload", "Main Power Fault", "Power Control Fault", "Drive Fault", "Cooling/Fan Fault")
"""The faults that `ipmitool chassis status` speaks of."""
