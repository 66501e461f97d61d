"""Finds out what HOSTS that answer with as much as they may cost the controller, along with honest ones at the default number of
connections, and whether the verdicts of the honest ones are whole. Real SSH logins on loopback addresses."""

import json
import sys

import click

from benchmarks.support import logins
from benchmarks.support.measuring import COUNT, benchmark, cost

from village import Fault  # isort: skip  (the import of logins says where it is)

HONEST = 8
MAX_MIB = 500
LIAR = r"""
import base64, json, os, random, re, sys, zlib
script = sys.stdin.buffer.read()
nonce = re.search(rb"^NONCE = '([0-9a-f]+)'", script, re.MULTILINE)[1].decode()
asked = json.loads(re.search(rb"^ASKED = (.*)$", script, re.MULTILINE)[1])
own = os.environ["SSH_CONNECTION"].split()[2]
lie, chance = int(own.rpartition(".")[2]) % 4, random.Random(own)
names = [f"{family}.{name}" for family, each in asked.items() for name in each]
if lie == 0:  # facts that nobody asked for
    facts = {f"host.x{number}": {"value": chance.random()} for number in range(90_000)}
elif lie == 1:  # long texts
    facts = {name: {"value": chance.randbytes(7000).hex() * 3} for name in names[:340]}
elif lie == 2:  # many values
    facts = {name: {"value": [str(chance.random())[:6] for _ in range(min(9999, 480_000 // len(names)))]} for name in names}
else:  # one for each of many subjects
    facts = {name: {"each": {f"{chance.random()}": {"value": at} for at in range(150_000 // len(names))}} for name in names}
head = {"schema": "nodetune.facts/1", "about": {"seconds": 1}, "failed": {}, "stuck": []}
lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(facts[name])}" for name in sorted(facts))
text = json.dumps(head, indent=1)[:-2] + ',\n "facts": {\n' + lines + "\n }\n}\n"
packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
parts = [packed[at : at + 900] for at in range(0, len(packed), 900)]
sys.stdout.write("".join(f"<<nodetune {nonce} {n + 1}/{len(parts)} {part}>>\n" for n, part in enumerate(parts)))
"""
"""Four ways to fill what a host may send: each host answers with other values, within every limit for one host."""


@benchmark(__doc__, count=4)
@click.argument("count", metavar="[HOSTS]", default=64, type=COUNT)
def main(count):
    liar = Fault(f"exec {sys.executable} -I -S @bin@/liar.py", "ok")
    with logins.farm(HONEST, replayed=True, faults={f"liar{number}": liar for number in range(count)}) as served:
        (served.bin / "liar.py").write_text(LIAR)
        alone, together = served.folder / "alone.json", served.folder / "together.json"
        honest = [each for each in served.targets if each.name.startswith("good")]
        cost(logins.audit(served, honest, 64, "--format", "json", "--output", str(alone)), expected=(0, 3))
        command = logins.audit(
            served, served.targets, 64, "--timeout", "600", "--format", "json", "--output", str(together)
        )
        _, wall, peak = cost(command, expected=(0, 3))
        wanted, found = (verdicts(path) for path in (alone, together))
        hosts = json.loads(together.read_text())["hosts"]
    print(*(f"{each['name']}: {each['state']} {each.get('message')}" for each in hosts), sep="\n")
    whole = sum(found[each.name] == wanted[each.name] for each in honest)
    figure = f"{whole} of {HONEST} whole; {wall:.0f} s, {peak:.0f} MiB"
    if whole != HONEST or peak > MAX_MIB:
        sys.exit(figure)
    return {"lying_hosts": figure}


def verdicts(path):
    """Return the findings of each host by check, without what compares it with others."""
    hosts = json.loads(path.read_text())["hosts"]
    return {
        each["name"]: {one["check"]: (one["status"], one.get("observed")) for one in each.get("findings", ())}
        for each in hosts
    }


if __name__ == "__main__":
    main()
