"""An InfiniBand fabric as `ibnetdiscover` saved it: which port leads to which."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from nodetune.foundation import UserError, file_io
from nodetune.foundation import text as plain_text

LARGEST = 64 << 20
"""In bytes: that of 100,000 adapters is half as large."""

NODE = re.compile(r'(Switch|Ca|Rt)\t\d{1,3} "[SHR]-([0-9a-f]{16})"\s+# "(.*)".*')
PORT = re.compile(r'\[(\d{1,3})\](?:\([0-9a-f]+\))?\s+"[SHR]-([0-9a-f]{16})"\[(\d{1,3})\](?: ?\([0-9a-f]+\))?\s+#.*')
REST = re.compile(r"\s*|#.*|(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=0x[0-9a-f]+(\([0-9a-f]+\))?\s*")
PLAIN = "give the plain output of ibnetdiscover (ibnetdiscover > FILE, without an option that changes its form)"
AGAIN = "the file is cut or changed: run ibnetdiscover again"
SYSTEM = re.compile(r"[^;]*;([^;:]+):[^;]*")
"""The description of a managed switch: MF0;NAME:MODEL/U1."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")


@dataclass
class FabricNode:
    """A switch, an adapter or a router: its GUID, kind and description, the line it is on, and port → (GUID, port) at its end."""

    guid: str
    kind: str
    description: str
    line: int
    ports: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def links(self) -> Counter[str]:
        """Return GUID → the number of links to it."""
        return Counter(guid for guid, _ in self.ports.values())


@dataclass(frozen=True)
class Fabric:
    """Switches and adapters by GUID, of one subnet or of several."""

    switches: dict[str, FabricNode]
    adapters: dict[str, FabricNode]
    names: dict[str, str]
    """The name of each switch: that of its description if no other switch has it, else its GUID."""


def read(*paths: Path) -> Fabric:
    """Read the fabric from files, one for each subnet. Raise UserError or OSError."""
    nodes: dict[str, FabricNode] = {}
    for path in paths:
        content = file_io.read(path, LARGEST).decode(errors="replace")
        for node in _Reader(str(path)).nodes(content).values():
            if node.guid in nodes:
                raise UserError(
                    f"{path}: line {node.line}: {node.guid} is in another of the files, too: give each subnet once"
                )
            nodes[node.guid] = node
    switches = {guid: node for guid, node in nodes.items() if node.kind == "Switch"}
    if not any(node.ports for node in switches.values()):
        raise UserError(
            f"{paths[0]}: no switch with a link in it: run ibnetdiscover on a port with a link (-C mlx5_0 -P 1)"
        )
    return Fabric(switches, {guid: node for guid, node in nodes.items() if node.kind == "Ca"}, _names(switches))


def _names(switches: dict[str, FabricNode]) -> dict[str, str]:
    told = {guid: SYSTEM.sub(r"\1", node.description) for guid, node in switches.items()}
    often = Counter(told.values())
    return {guid: name if often[name] == 1 and NAME.fullmatch(name) else f"ib-{guid}" for guid, name in told.items()}


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path
        self._nodes: dict[str, FabricNode] = {}

    def nodes(self, content: str) -> dict[str, FabricNode]:
        node = None
        for number, ended in enumerate(io.StringIO(content, newline="\n"), 1):
            line = ended.removesuffix("\n")
            if line == ended:
                raise self._problem(number, f"it has no end: {AGAIN if self._nodes else PLAIN}")
            if found := PORT.fullmatch(line):
                if node is None or found[1] in node.ports:
                    raise self._problem(number, f"port {found[1]} belongs to no node, or is there twice: {AGAIN}")
                node.ports[found[1]] = found[2], found[3]
            elif found := NODE.fullmatch(line):
                node = self._new(FabricNode(found[2], found[1], found[3], number))
            elif not REST.fullmatch(line):
                raise self._problem(number, f"{plain_text.plain(line, 60)!r} is not a line of a fabric: {PLAIN}")
            elif not line.strip():
                node = None
        self._both_ways()
        return self._nodes

    def _new(self, node: FabricNode) -> FabricNode:
        if node.guid in self._nodes:
            first = self._nodes[node.guid].line
            raise self._problem(node.line, f"the GUID {node.guid} is on line {first}, too: {AGAIN}")
        self._nodes[node.guid] = node
        return node

    def _both_ways(self) -> None:
        """Raise UserError unless each link is listed at both of its ends: what is cut off is found so."""
        for node in self._nodes.values():
            for port, (guid, other) in node.ports.items():
                end = self._nodes.get(guid)
                if end is None or end.ports.get(other) != (node.guid, port):
                    raise self._problem(node.line, f"port {port} leads to {guid}, which does not lead back: {AGAIN}")

    def _problem(self, line: int, text: str) -> UserError:
        return UserError(f"{self._path}: line {line}: {text}")
