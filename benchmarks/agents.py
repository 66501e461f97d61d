"""Measures the answers of `nodetune mcp`, asked by the library's own client, about untuned hosts: the largest answer, and the
slowest tool beside one `nodetune audit` of the same hosts."""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import click

from benchmarks.support.measuring import BIN, COUNT, benchmark, cost, times

MACHINE = Path(__file__).resolve().parents[1] / "tests/data/synthetic/hgx-h200-untuned.json"
EVERY = {"severity": "info", "limit": 1000}
TOOLS = {"audit": EVERY, "findings": EVERY, "plan": EVERY, "status": EVERY, "changes": {}, "checks": {}}


def fill(folder, hosts):
    """Write the facts of hosts that differ in one value."""
    folder.mkdir()
    facts = json.loads(MACHINE.read_text("utf-8"))
    for number in range(hosts):
        facts["host"] = f"gpu{number:04d}"
        facts["facts"]["sysctl.vm.swappiness"] = {"value": str(number % 100)}
        (folder / f"{facts['host']}.json").write_text(json.dumps(facts))


async def ask(words):
    """Return tool → seconds and bytes of its answer."""
    from mcp import Client, StdioServerParameters

    found = {}
    async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
        for name, arguments in TOOLS.items():
            start = time.perf_counter()
            answer = await client.call_tool(name, arguments)
            found[name] = time.perf_counter() - start, len(answer.model_dump_json())
            print(f"{name:9} {found[name][0]:.2f} s, {found[name][1]} bytes")
    return found


@benchmark(__doc__, hosts=20)
@click.argument("hosts", default=1000, type=COUNT)
def main(hosts):
    with tempfile.TemporaryDirectory() as place:
        facts, history = Path(place, "facts"), f"{place}/fleet.db"
        fill(facts, hosts)
        audit = [sys.executable, f"{BIN}/nodetune", "audit", "--facts", facts, "--format", "lines"]
        cost([*audit, "--history", history], expected=(1,))
        found = asyncio.run(ask([f"{BIN}/nodetune", "mcp", "--facts", str(facts), "--history", history]))
        alone = min(cost(audit, expected=(1,)).wall for _ in range(2))
    slowest = max(found, key=lambda name: found[name][0])
    told = times(found[slowest][0], alone)
    return {"agents": f"{max(size for _, size in found.values())} bytes; {told} an audit, {found[slowest][0]:.1f} s"}


if __name__ == "__main__":
    main()
