"""Every kind of change, by its name. Ansible sends along what is named in an import, nothing else: so each is named."""

from . import bootarg, cpu, edit, file, gpu, guarded, irqs, link, module, mount, program, run, slurm, swap, unit, value

__all__ = [
    "bootarg",
    "cpu",
    "edit",
    "file",
    "gpu",
    "guarded",
    "irqs",
    "link",
    "module",
    "mount",
    "program",
    "run",
    "slurm",
    "swap",
    "unit",
    "value",
]
