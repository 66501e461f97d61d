"""RDMA devices and their ports, from /sys/class/infiniband: `rdma.*`. Subjects are "device/port"."""

import fnmatch
import os
import re

from . import read

CLASS = "/sys/class/infiniband"
VERBS = "/sys/class/infiniband_verbs"
NET = "/sys/class/net"
CONFIGFS = "/sys/kernel/config/rdma_cm"
BDF = re.compile(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
COUNTERS = (
    "port_rcv_packets",
    "port_xmit_packets",
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_xmit_discards",
    "port_xmit_wait",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)
HW_COUNTERS = (
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
    "implied_nak_seq_err",
    "out_of_buffer",
    "np_cnp_sent",
    "rp_cnp_handled",
    "roce_adp_retrans",
    "roce_slow_restart",
    "tx_pkts",
    "rx_pkts",
    "rx_drops",
    "retrans_pkts",
    "retrans_timeout_events",
    "impaired_remote_conn_events",
    "unresponsive_remote_events",
    "rdma_read_wr_err",
    "rdma_write_wr_err",
)
"""From tx_pkts on, those of EFA."""
PLUGINS = {
    "sharp": (
        "/opt/hpcx*/sharp/lib/libsharp_coll.so*",
        "/opt/mellanox/sharp/lib/libsharp_coll.so*",
        "/usr/lib/*/libsharp_coll.so*",
        "/usr/lib64/libsharp_coll.so*",
    ),
    "nccl_rdma_sharp": ("/opt/hpcx*/nccl_rdma_sharp_plugin/lib/libnccl-net.so*",),
    "aws_ofi": (
        "/opt/amazon/ofi-nccl/lib*/libnccl-net*.so*",
        "/opt/amazon/ofi-nccl/lib/*/libnccl-net*.so*",
        "/opt/aws-ofi-nccl/lib*/libnccl-net*.so*",
    ),
    "libfabric": ("/opt/amazon/efa/lib*/libfabric.so*",),
    "other": (
        "/usr/lib/*/libnccl-net*.so*",
        "/usr/lib64/libnccl-net*.so*",
        "/usr/local/lib/libnccl-net*.so*",
        "/usr/local/gib/lib64/libnccl-net*.so*",
    ),
}


def collect(names, step):
    step("devices")
    devices = {name: _device(name) for name in read.names_in(CLASS)}
    yield "devices", read.value(devices)
    own = [name for name, device in devices.items() if not device["virtual_function"]]
    yield "guid", read.each({name: read.file_fact("{}/{}/node_guid".format(CLASS, name)) for name in own})
    if "device_files" in names:
        yield "device_files", read.value(_device_files())
    ports = {}
    for name in sorted(devices):
        for port in read.names_in("{}/{}/ports".format(CLASS, name)):
            step("port {} of {}".format(port, name))
            ports[name + "/" + port] = _port(name, port, devices[name])
    yield "ports", read.value(ports)
    if "active_mtu" in names:
        step("ibv_devinfo")
        yield "active_mtu", _active_mtus(ports)
    step("GIDs")
    yield "gids", read.each({key: _gids(_of(key)) for key in ports})
    step("quality of service")
    yield "traffic_class", read.each({key: _traffic_class(key) for key in ports})
    yield "cm_tos", read.each({key: _cm_tos(key) for key in ports})
    for group, wanted in (("counters", COUNTERS), ("hw_counters", HW_COUNTERS)):
        if group in names:  # each one asks the firmware
            step(group)
            yield group, read.each({key: _numbers(_of(key) + group, wanted) for key in ports})
    step("IPoIB")
    yield "ipoib", read.each({name: _ipoib(name) for name in read.names_in(NET) if _is_ipoib(name)})
    if "net_plugins" in names:
        step("NCCL network plugins")
        yield "net_plugins", read.value({kind: _found(patterns) for kind, patterns in PLUGINS.items()})


def _of(key):
    """Return the folder of the port "mlx5_0/1"."""
    return "{}/{}/ports/{}/".format(CLASS, *key.rsplit("/", 1))


def _device(name):
    folder = "{}/{}/".format(CLASS, name)
    pci = os.path.basename(read.real(folder + "device")) if read.exists(folder + "device") else ""
    vendor = read.text_or(folder + "device/vendor")
    node = read.text_or(folder + "device/numa_node")
    return {
        "firmware": read.text_or(folder + "fw_ver") or None,
        "board_id": read.text_or(folder + "board_id") or None,
        "hca_type": read.text_or(folder + "hca_type") or None,
        "node_type": read.text_or(folder + "node_type").partition(": ")[2] or None,
        "vendor": vendor[2:] if vendor.startswith("0x") else None,
        "driver": read.link_name(folder + "device/driver"),
        "bdf": pci if BDF.match(pci) else None,
        "numa_node": int(node) if node.isdigit() else None,
        "virtual_function": read.exists(folder + "device/physfn"),
    }


def _device_files():
    """Return {device: its file of /dev/infiniband} of the devices that programs can open."""
    try:
        found = {name: VERBS + "/" + name for name in read.names_in(VERBS) if name.startswith("uverbs")}
    except OSError:
        return {}  # ib_uverbs is not loaded
    files = {read.text_or(folder + "/ibdev"): "/dev/infiniband/" + name for name, folder in found.items()}
    return {device: path for device, path in sorted(files.items()) if device and read.exists(path)}


def _port(name, port, device):
    folder = _of(name + "/" + port)
    rate = read.text_or(folder + "rate")
    width = re.search(r"\((\d+)X", rate)
    return {
        "state": read.text_or(folder + "state").partition(": ")[2],
        "phys_state": read.text_or(folder + "phys_state").partition(": ")[2],
        "rate_gbps": float(rate.split()[0]) if rate else None,
        "width": int(width.group(1)) if width else None,
        "link_layer": read.text_or(folder + "link_layer"),
        "sm_lid": _hexadecimal(folder + "sm_lid"),
        "netdev": _netdev(name, port),
        "bdf": device["bdf"],
        "numa_node": device["numa_node"],
        "model": device["board_id"] or device["hca_type"],
        "virtual_function": device["virtual_function"],
    }


MTUS = (4096, 2048, 1024, 512, 256)
HEADERS = 96
"""Bytes of RoCE's headers that the kernel takes off a link's MTU (iboe_get_mtu in include/rdma/ib_addr.h)."""


def _active_mtus(ports):
    """Return the RDMA MTU of each active port as ibv_devinfo prints it: sysfs and netlink have none.

    Without it, that of RoCE is what the kernel makes of the link's MTU; IPoIB's MTU may be smaller than InfiniBand's.
    """
    tool = read.find_tool("ibv_devinfo")
    try:
        told = _devinfo(read.run([read.ROOT + tool])) if tool else {}
    except OSError:
        told = {}
    active = [key for key in ports if ports[key]["state"] == "ACTIVE"]
    return read.each({key: _active_mtu(ports[key], told.get(key)) for key in active})


def _devinfo(text):
    found, device, port = {}, "", ""
    for name, value in re.findall(r"^\s*(hca_id|port|active_mtu):\s+(\S+)", text, re.M):
        if name == "hca_id":
            device = value
        elif name == "port":
            port = value
        elif value.isdigit():
            found[device + "/" + port] = int(value)
    return found


def _active_mtu(port, told):
    if told:
        return read.value({"bytes": told, "by": "ibv_devinfo"})
    if port["link_layer"] != "Ethernet" or not port["netdev"]:
        return read.absent("needs ibv_devinfo (ibverbs-utils, libibverbs-utils)")
    link = read.file_fact("{}/{}/mtu".format(NET, port["netdev"]), int)
    if "value" not in link:
        return link
    fits = [each for each in MTUS if each <= link["value"] - HEADERS]
    by = "the MTU of {}, {}".format(port["netdev"], link["value"])
    return read.value({"bytes": fits[0], "by": by}) if fits else read.absent(by)


def _hexadecimal(path):
    content = read.text_or(path)
    return int(content, 16) if content.startswith("0x") else None


def _netdev(name, port):
    """Return the link of a port: the one of its first GID, else the device's link with that port number."""
    named = read.text_or(_of(name + "/" + port) + "gid_attrs/ndevs/0")
    if named:
        return named
    folder = "{}/{}/device/net".format(CLASS, name)
    links = read.names_in(folder)
    # dev_port counts from 0; drivers with one function per port leave it at 0 for every port
    matching = [link for link in links if read.text_or("{}/{}/dev_port".format(folder, link)) == str(int(port) - 1)]
    return (matching or links or [None])[0]


def _gids(folder):
    """Return every GID of the port that is set, with its type and network link."""
    found = []
    for index in sorted(read.names_in(folder + "gids"), key=int):
        gid = read.text_or(folder + "gids/" + index)
        if gid.strip("0:"):
            kind = read.text_or(folder + "gid_attrs/types/" + index) or None
            netdev = read.text_or(folder + "gid_attrs/ndevs/" + index) or None
            found.append({"index": int(index), "gid": gid, "type": kind, "netdev": netdev})
    return read.value(found)


def _traffic_class(key):
    """Return the traffic class that overrides all connections of a port (a file of NVIDIA's own driver packages)."""
    name, port = key.rsplit("/", 1)
    fact = read.file_fact("{}/{}/tc/{}/traffic_class".format(CLASS, name, port))
    if "value" not in fact:
        return fact
    number = re.search(r"Global tclass=(\d+)", fact["value"])
    return read.value(int(number.group(1))) if number else read.absent("no global traffic class is set")


def _cm_tos(key):
    """Return the type of service of rdma_cm connections; the folder exists only if an administrator created it."""
    name, port = key.rsplit("/", 1)
    return read.file_fact("{}/{}/ports/{}/default_roce_tos".format(CONFIGFS, name, port), int)


def _numbers(folder, wanted):
    found = {}
    for name in wanted:
        fact = read.file_fact(folder + "/" + name, int)
        if "value" in fact:
            found[name] = fact["value"]
        elif "unread" in fact and "invalid argument" not in fact["unread"]:
            return fact
    return read.value(found) if found else read.absent("the driver has no counters here")


def _is_ipoib(name):
    return read.text_or("{}/{}/type".format(NET, name)) == "32" and read.exists("{}/{}/mode".format(NET, name))


def _ipoib(name):
    folder = "{}/{}/".format(NET, name)
    return read.file_fact(
        folder + "mode",
        lambda mode: {
            "mode": mode,
            "mtu": int(read.text(folder + "mtu")),
            "up": read.text_or(folder + "carrier") == "1",
        },
    )


def _found(patterns):
    """Return the matching files; each pattern is expanded one level at a time so that read.ROOT applies."""
    return [path for pattern in patterns for path in _expanded("", pattern.strip("/").split("/"))]


def _expanded(folder, parts):
    if not parts:
        return [folder]
    if "*" not in parts[0]:
        return _expanded(folder + "/" + parts[0], parts[1:]) if read.exists(folder + "/" + parts[0]) else []
    try:
        names = fnmatch.filter(read.names_in(folder), parts[0])
    except OSError:
        return []
    return [path for name in names for path in _expanded(folder + "/" + name, parts[1:])]
