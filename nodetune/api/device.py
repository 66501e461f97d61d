"""One device of a host with all its names: a value, which the model and what finds devices share."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("gpu", "nic", "port", "drive", "link", "cpu")
"""Kinds of devices. link: what joins the ends in its name, such as a path between two hosts. Empty: unknown."""


@dataclass(frozen=True)
class Device:
    """One device: `name` is GPU3, mlx5_2, eth0 or nvme0; `address` is the one on the PCI bus. `kind`: see KINDS."""

    name: str
    address: str = ""
    uuid: str = ""
    serial: str = ""
    netdev: str = ""
    kind: str = ""

    @property
    def part(self) -> str:
        """Return the serial number, else the UUID: a part that replaces this one has another. Empty if unknown."""
        return self.serial or self.uuid

    @property
    def place(self) -> str:
        """Return where it is: its address, else its name. A part that replaces it has the same."""
        return self.address or self.name
