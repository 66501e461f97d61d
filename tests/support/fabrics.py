"""InfiniBand fabrics in the form of ibnetdiscover, which ibsim reads too, and facts of the hosts on them."""

from nodetune.api.model import Each, HostFacts, HostResult, Value

SWITCH, ADAPTER = 0x0AA0 << 48, 0x0BB0 << 48


class Net:
    """`switch` and `adapter` return GUIDs, which `link` joins port by port."""

    def __init__(self):
        self.nodes = {}

    def switch(self, description):
        return self._new("Switch", SWITCH, description)

    def adapter(self, description):
        return self._new("Ca", ADAPTER, description)

    def _new(self, kind, first, description):
        guid = f"{first + len(self.nodes) + 1:016x}"
        self.nodes[guid] = (kind, description, {})
        return guid

    def link(self, one, other):
        ends = [(guid, len(self.nodes[guid][2]) + 1) for guid in (one, other)]
        self.nodes[one][2][ends[0][1]] = ends[1]
        self.nodes[other][2][ends[1][1]] = ends[0]

    def text(self):
        return "#\n# Topology file: made up\n#\n\n" + "\n".join(map(self._node, self.nodes))

    def _node(self, guid):
        kind, description, ports = self.nodes[guid]
        head = (
            f"switchguid=0x{int(guid, 16):x}({int(guid, 16):x})" if kind == "Switch" else f"caguid=0x{int(guid, 16):x}"
        )
        size = 64 if kind == "Switch" else 1
        lines = [head, f'{kind}\t{size} "{kind[0].replace("C", "H")}-{guid}"\t\t# "{description}"']
        for port, (to, other) in ports.items():
            of = self.nodes[to][0]
            lines.append(f'[{port}]\t"{of[0].replace("C", "H")}-{to}"[{other}]\t\t# "{self.nodes[to][1]}" lid 0 4xQDR')
        return "\n".join(lines) + "\n"

    def full(self, lower, upper):
        """Link each of some switches to each of others."""
        for one in lower:
            for other in upper:
                self.link(one, other)


def managed(name):
    """The description of a managed switch."""
    return f"MF0;{name}:MQM9700/U1"


def fat_tree(hosts, per_leaf, spines):
    """Two levels: hosts with one adapter, leaf switches, spines. Return the net and the facts of the hosts."""
    net, results = Net(), []
    leaves = [net.switch(managed(f"leaf{number + 1:02}")) for number in range(hosts // per_leaf)]
    net.full(leaves, [net.switch(managed(f"spine{number + 1}")) for number in range(spines)])
    for number in range(hosts):
        name = f"gpu{number + 1:04}"
        guid = net.adapter(f"{name} mlx5_0")
        net.link(guid, leaves[number // per_leaf])
        results.append(host(name, {"mlx5_0": guid}))
    return net, results


def three_levels(pods, leaves, per_leaf):
    """Pods of leaf switches and two spines each, and four cores above all spines."""
    net, results = Net(), []
    cores = [net.switch(managed(f"core{number + 1}")) for number in range(4)]
    for pod in range(pods):
        lower = [net.switch(managed(f"pod{pod + 1:02}-leaf{number + 1:02}")) for number in range(leaves)]
        upper = [net.switch(managed(f"pod{pod + 1:02}-spine{number + 1}")) for number in range(2)]
        net.full(lower, upper)
        net.full(upper[:1], cores[:2])
        net.full(upper[1:], cores[2:])
        for leaf in lower:
            for _ in range(per_leaf):
                name = f"gpu{len(results) + 1:04}"
                guid = net.adapter(f"{name} mlx5_0")
                net.link(guid, leaf)
                results.append(host(name, {"mlx5_0": guid}))
    return net, results


def rails(hosts, unit, count=8):
    """Units of hosts with a leaf switch for each rail, spines for each rail, and one storage switch for all hosts."""
    net, results = Net(), []
    storage = [net.switch(managed(f"storage{number + 1:02}")) for number in range(-(-hosts // 32))]
    top = net.switch(managed("storage-top"))
    net.full(storage, [top])
    spines = [[net.switch(managed(f"spine{rail + 1}-{number + 1}")) for number in range(2)] for rail in range(count)]
    joint = net.switch(managed("joint"))
    net.full([each[0] for each in spines], [joint])
    net.full([top], [joint])
    leaves = {}
    for number in range(hosts):
        name, at = f"gpu{number + 1:04}", number // unit
        guids = {}
        for rail in range(count):
            if (at, rail) not in leaves:
                leaves[at, rail] = net.switch(managed(f"su{at + 1:02}-rail{rail + 1}"))
                net.full([leaves[at, rail]], spines[rail])
            guids[f"mlx5_{rail}"] = net.adapter(f"{name} mlx5_{rail}")
            net.link(guids[f"mlx5_{rail}"], leaves[at, rail])
        guids[f"mlx5_{count}"] = net.adapter(f"{name} mlx5_{count}")
        net.link(guids[f"mlx5_{count}"], storage[number % len(storage)])
        results.append(host(name, guids, gpus=count))
    return net, results


def host(name, guids, gpus=1, model=None, flat=False, **more):
    """A node of Slurm: GPU n is on one PCIe switch with mlx5_n; other adapters are on a root port of the first socket.

    `flat`: nothing is on a PCIe switch. `model`: device → board, if not all are of one.
    """
    bus, cards, model = {}, {}, model or {}
    half = max(1, gpus // 2)
    for number in range(gpus):
        bus[f"0000:{number:02x}:02.0"] = _on([] if flat else [f"r{number}", f"u{number}", "a"], number // half)
    for device in guids:
        number = int(device.rpartition("_")[2])
        near = number < gpus
        bus[f"0000:{number:02x}:01.0"] = _on(
            [f"r{number}", f"u{number}", "b"] if near and not flat else [], number // half if near else 0
        )
        cards[device] = {
            "bdf": f"0000:{number:02x}:01.0",
            "board_id": model.get(device, "MT_0000000838"),
            "virtual_function": False,
        }
    facts = {
        "slurm.present": Value(True),
        "slurm.config": Value({"file": "/etc/slurm/slurm.conf", "settings": {}}),
        "slurm.cluster": Value({}),
        "slurm.topology": topology(name),
        "rdma.guid": Each({device: Value(_colons(guid)) for device, guid in guids.items()}),
        "rdma.devices": Value(cards),
        "pci.gpus": Value([bdf for bdf in bus if bdf.endswith("02.0")]),
        "pci.devices": Value(bus),
    }
    return HostResult(name, "ok", facts=HostFacts(name, facts | more))


def topology(name, version="25.05.3", file=None, **above):
    return Value({"hostname": name, "version": version, "file": file, "above": above})


def _on(parents, numa):
    return {"parents": parents, "numa_node": numa}


def _colons(guid):
    return ":".join(guid[at : at + 4] for at in range(0, 16, 4))
