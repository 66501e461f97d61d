// SPDX-License-Identifier: GPL-2.0
/*
 * Pretended GPUs: configuration space only, no BARs, no driver. On each of two NUMA nodes there is a host bridge with a
 * root port, a PCIe switch, and four GPUs below it, as on an HGX board. What is written to link and ACS control stays.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/vmalloc.h>

#define NODES 2
#define GPUS_PER_NODE 4
#define FUNCTIONS (2 + 2 * GPUS_PER_NODE)
#define EXPRESS 0x60 /* offsets of capabilities */
#define AER 0x100
#define ACS 0x200

static int degraded = -1;
module_param(degraded, int, 0444);
MODULE_PARM_DESC(degraded, "index of a GPU whose link came up at 2.5 GT/s, x8");

struct function {
	u8 bus, devfn;
	u8 value[PCI_CFG_SPACE_EXP_SIZE];
	u8 writable[PCI_CFG_SPACE_EXP_SIZE]; /* a mask for each byte */
};

struct host {
	struct pci_sysdata sysdata; /* what x86 expects to find behind a bus */
	struct resource numbers;
	struct pci_bus *bus;
	int used;
	struct function function[FUNCTIONS];
};

static struct host *hosts[NODES];

static void put(struct function *f, int at, int size, u32 value)
{
	for (; size--; value >>= 8)
		f->value[at++] = value;
}

static struct function *find(struct pci_bus *bus, unsigned int devfn, int at, int size)
{
	struct host *host = container_of((struct pci_sysdata *)bus->sysdata, struct host, sysdata);
	int i;

	for (i = 0; i < host->used && at + size <= PCI_CFG_SPACE_EXP_SIZE; i++)
		if (host->function[i].bus == bus->number && host->function[i].devfn == devfn)
			return &host->function[i];
	return NULL;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int at, int size, u32 *value)
{
	struct function *f = find(bus, devfn, at, size);

	*value = f ? 0 : ~0U;
	if (!f)
		return PCIBIOS_DEVICE_NOT_FOUND;
	while (size--)
		*value = *value << 8 | f->value[at + size];
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int at, int size, u32 value)
{
	struct function *f = find(bus, devfn, at, size);

	if (!f)
		return PCIBIOS_DEVICE_NOT_FOUND;
	for (; size--; at++, value >>= 8)
		f->value[at] = (f->value[at] & ~f->writable[at]) | (value & f->writable[at]);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops operations = { .read = config_read, .write = config_write };

static struct function *add(struct host *host, u8 bus, u8 devfn, u32 id, u32 class, int type, int speed, int width)
{
	struct function *f = &host->function[host->used++];

	f->bus = bus;
	f->devfn = devfn;
	put(f, PCI_VENDOR_ID, 4, id);
	put(f, PCI_STATUS, 2, PCI_STATUS_CAP_LIST);
	put(f, PCI_CLASS_REVISION, 4, class << 8 | 0xa1);
	put(f, PCI_CAPABILITY_LIST, 1, EXPRESS);
	f->writable[PCI_COMMAND] = 0xff;
	f->writable[PCI_COMMAND + 1] = 0x07;
	put(f, EXPRESS, 4, PCI_CAP_ID_EXP | (2 | type << 4) << 16);
	put(f, EXPRESS + PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_RBER | 2); /* payloads up to 512 bytes */
	put(f, EXPRESS + PCI_EXP_DEVCTL, 2, 0x2930); /* 256 byte payloads, 512 byte reads, relaxed ordering, no snoop */
	f->writable[EXPRESS + PCI_EXP_DEVCTL] = 0xff;
	f->writable[EXPRESS + PCI_EXP_DEVCTL + 1] = 0x7f;
	put(f, EXPRESS + PCI_EXP_LNKCAP, 4, 5 | 16 << 4 | PCI_EXP_LNKCAP_ASPM_L0S | PCI_EXP_LNKCAP_ASPM_L1);
	f->writable[EXPRESS + PCI_EXP_LNKCTL] = 0xfb;
	put(f, EXPRESS + PCI_EXP_LNKSTA, 2, speed | width << 4);
	put(f, EXPRESS + PCI_EXP_LNKCAP2, 4, 0x3e); /* 2.5 to 32 GT/s */
	put(f, EXPRESS + PCI_EXP_LNKCTL2, 2, 5);
	put(f, AER, 4, PCI_EXT_CAP_ID_ERR | 2 << 16);
	memset(f->writable + AER + 4, 0xff, 0x14);
	return f;
}

static void add_bridge(struct host *host, u8 bus, u8 devfn, u32 id, int type, u8 below, u8 last, int speed, int width)
{
	struct function *f = add(host, bus, devfn, id, PCI_CLASS_BRIDGE_PCI << 8, type, speed, width);

	put(f, PCI_HEADER_TYPE, 1, PCI_HEADER_TYPE_BRIDGE);
	put(f, PCI_PRIMARY_BUS, 4, bus | below << 8 | last << 16);
	put(f, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	memset(f->writable + PCI_PRIMARY_BUS, 0xff, 3);
	memset(f->writable + PCI_BRIDGE_CONTROL, 0xff, 2);
	if (type == PCI_EXP_TYPE_UPSTREAM)
		return;
	put(f, AER, 4, PCI_EXT_CAP_ID_ERR | 2 << 16 | ACS << 20);
	put(f, ACS, 4, PCI_EXT_CAP_ID_ACS | 1 << 16);
	put(f, ACS + PCI_ACS_CAP, 2, 0x5f);
	put(f, ACS + PCI_ACS_CTRL, 2, PCI_ACS_SV | PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_UF);
	f->writable[ACS + PCI_ACS_CTRL] = 0x5f;
}

static void add_gpu(struct host *host, u8 bus, int speed, int width)
{
	struct function *f = add(host, bus, 0, 0x233510de, PCI_CLASS_DISPLAY_3D << 8, PCI_EXP_TYPE_ENDPOINT, speed, width);

	put(f, PCI_SUBSYSTEM_VENDOR_ID, 4, 0x18be10de);
}

static void add_board(struct host *host, int node, u8 root)
{
	u8 last = root + 2 + GPUS_PER_NODE;
	int i;

	add_bridge(host, root, PCI_DEVFN(1, 0), 0x352a8086, PCI_EXP_TYPE_ROOT_PORT, root + 1, last, 5, 16);
	add_bridge(host, root + 1, 0, 0xc0301000, PCI_EXP_TYPE_UPSTREAM, root + 2, last, 5, 16);
	for (i = 0; i < GPUS_PER_NODE; i++) {
		bool slow = node * GPUS_PER_NODE + i == degraded;
		int speed = slow ? 1 : 5, width = slow ? 8 : 16;

		add_bridge(host, root + 2, PCI_DEVFN(i, 0), 0xc0301000, PCI_EXP_TYPE_DOWNSTREAM, root + 3 + i,
			   root + 3 + i, speed, width);
		add_gpu(host, root + 3 + i, speed, width);
	}
}

static struct host *plug(int node)
{
	struct host *host = vzalloc(sizeof(*host));
	u8 root = node ? 0xc0 : 0x60; /* away from the bus numbers of QEMU's own host bridges */
	LIST_HEAD(windows);

	if (!host)
		return NULL;
	host->sysdata.node = node_online(node) ? node : NUMA_NO_NODE;
	add_board(host, node, root);
	host->numbers = (struct resource){ .name = "fakepci", .start = root, .end = root + 0x0f, .flags = IORESOURCE_BUS };
	pci_add_resource(&windows, &host->numbers);
	pci_lock_rescan_remove();
	host->bus = pci_create_root_bus(NULL, root, &operations, &host->sysdata, &windows);
	if (host->bus) {
		pci_scan_child_bus(host->bus);
		pci_bus_add_devices(host->bus);
	}
	pci_unlock_rescan_remove();
	return host;
}

static void __exit fakepci_exit(void)
{
	int node;

	for (node = 0; node < NODES; node++) {
		if (hosts[node] && hosts[node]->bus) {
			pci_lock_rescan_remove();
			pci_stop_root_bus(hosts[node]->bus);
			pci_remove_root_bus(hosts[node]->bus);
			pci_unlock_rescan_remove();
		}
		vfree(hosts[node]);
	}
}

static int __init fakepci_init(void)
{
	int node;

	for (node = 0; node < NODES; node++)
		hosts[node] = plug(node);
	return hosts[0] && hosts[1] ? 0 : -ENOMEM;
}

module_init(fakepci_init);
module_exit(fakepci_exit);
MODULE_DESCRIPTION("Pretended GPUs for tests");
MODULE_LICENSE("GPL");
