// SPDX-License-Identifier: GPL-2.0
/* A stand-in for nvidia-uvm.ko: it has the driver's version, and can be loaded. */
#include <linux/module.h>

static int __init nvidia_uvm_init(void)
{
	return 0;
}

static void __exit nvidia_uvm_exit(void)
{
}

module_init(nvidia_uvm_init);
module_exit(nvidia_uvm_exit);
MODULE_VERSION("000.000.00");
#ifdef OPEN
MODULE_LICENSE("Dual MIT/GPL");
#else
MODULE_LICENSE("NVIDIA");
#endif
MODULE_SOFTDEP("pre: nvidia");
