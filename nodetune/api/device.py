"""One device of a host with all its names: a value, which the model and what finds devices share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One device: `name` is GPU3, mlx5_2, eth0 or nvme0; `address` is the one on the PCI bus."""

    name: str
    address: str
    uuid: str = ""
    serial: str = ""
    netdev: str = ""
