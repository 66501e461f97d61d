// SPDX-License-Identifier: GPL-2.0
/*
 * A stand-in for nvidia.ko: its version and flavour in /sys/module and /proc/driver/nvidia, and the GPUs bound to it.
 * No memory of theirs is touched. VERSION is overwritten in the built file: all versions are ten characters long.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#define VERSION "000.000.00"

#ifdef OPEN
#define FLAVOUR "NVIDIA UNIX Open Kernel Module for x86_64  " VERSION "  Release Build  (stand-in)"
MODULE_LICENSE("Dual MIT/GPL");
#else
#define FLAVOUR "NVIDIA UNIX x86_64 Kernel Module  " VERSION "  (stand-in)"
MODULE_LICENSE("NVIDIA");
#endif
MODULE_VERSION(VERSION);

static int NVreg_RestrictProfilingToAdminUsers = 1;
module_param(NVreg_RestrictProfilingToAdminUsers, int, 0444);

static struct proc_dir_entry *folder;

static int show_version(struct seq_file *to, void *unused)
{
	seq_puts(to, "NVRM version: " FLAVOUR "\nGCC version:  gcc version 12.2.0\n");
	return 0;
}

static int show_params(struct seq_file *to, void *unused)
{
	seq_printf(to, "ModifyDeviceFiles: 1\nRmProfilingAdminOnly: %d\n", NVreg_RestrictProfilingToAdminUsers);
	return 0;
}

static int bind(struct pci_dev *gpu, const struct pci_device_id *id)
{
	return 0;
}

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID), .class = PCI_CLASS_DISPLAY_3D << 8, .class_mask = ~0 },
	{ }
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver driver = { .name = "nvidia", .id_table = ids, .probe = bind };

static int __init nvidia_init(void)
{
	int failed;

	folder = proc_mkdir("driver/nvidia", NULL);
	if (!folder)
		return -ENOMEM;
	proc_create_single("version", 0444, folder, show_version);
	proc_create_single("params", 0444, folder, show_params);
	failed = pci_register_driver(&driver);
	if (failed)
		proc_remove(folder);
	return failed;
}

static void __exit nvidia_exit(void)
{
	pci_unregister_driver(&driver);
	proc_remove(folder);
}

module_init(nvidia_init);
module_exit(nvidia_exit);
