// SPDX-License-Identifier: GPL-2.0
/* Pretended NVSwitches of an HGX H200 board, four 10de:22a3 on a bus of their own: configuration space only. */
#include <linux/module.h>
#include <linux/pci.h>

#define SWITCHES 4
#define BUS 0xe0 /* away from those of QEMU and of fakepci */

static struct pci_sysdata sysdata = { .node = NUMA_NO_NODE };
static struct resource numbers = { .name = "fakenvswitch", .start = BUS, .end = BUS, .flags = IORESOURCE_BUS };
static struct pci_bus *board;

static int config_read(struct pci_bus *bus, unsigned int devfn, int at, int size, u32 *value)
{
	u32 word = 0;

	*value = ~0U;
	if (bus->number != BUS || PCI_FUNC(devfn) || PCI_SLOT(devfn) >= SWITCHES)
		return PCIBIOS_DEVICE_NOT_FOUND;
	switch (at & ~3) {
	case PCI_VENDOR_ID:
		word = 0x22a310de;
		break;
	case PCI_CLASS_REVISION:
		word = PCI_CLASS_BRIDGE_OTHER << 16 | 0xa1;
		break;
	case PCI_SUBSYSTEM_VENDOR_ID:
		word = 0x179610de;
		break;
	}
	*value = word >> 8 * (at & 3);
	if (size < 4)
		*value &= (1U << 8 * size) - 1;
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int at, int size, u32 value)
{
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops operations = { .read = config_read, .write = config_write };

static int __init fakenvswitch_init(void)
{
	LIST_HEAD(windows);

	pci_add_resource(&windows, &numbers);
	pci_lock_rescan_remove();
	board = pci_create_root_bus(NULL, BUS, &operations, &sysdata, &windows);
	if (board) {
		pci_scan_child_bus(board);
		pci_bus_add_devices(board);
	}
	pci_unlock_rescan_remove();
	return board ? 0 : -ENOMEM;
}

static void __exit fakenvswitch_exit(void)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(board);
	pci_remove_root_bus(board);
	pci_unlock_rescan_remove();
}

module_init(fakenvswitch_init);
module_exit(fakenvswitch_exit);
MODULE_DESCRIPTION("Pretended NVSwitches for tests");
MODULE_LICENSE("GPL");
