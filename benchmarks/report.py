"""How long thousands of recorded hosts take from their fact files to the HTML page, with how much memory, and how large it is.

python benchmarks/report.py [HOSTS [PROCESSES]]: fact files derived from the machines of the tests by a seeded generator
(settings that drifted, temperatures and counters that differ on every host, facts that could not be read), judged by worker
processes that hand back what the page needs of them.
"""

import json
import os
import random
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from nodetune import checks, factfile, paths, workflow
from nodetune.choice import Choice
from nodetune.report import html
from nodetune.report.html_data import Compact

MACHINES = ("hgx-h200-tuned", "hgx-h200-tuned", "hgx-h200-tuned", "hgx-h200-untuned", "pcie-8xl40s", "grace-gb200")
DISTINCT = 1000
"""Documents; more hosts than these are links to them under names of their own."""

DRIFT = {"sysctl.vm.swappiness": 60, "sysctl.kernel.numa_balancing": 1, "sysctl.vm.zone_reclaim_mode": 1}
CHUNK = 100


def main() -> None:
    count, processes = (int(given) for given in (sys.argv[1:] + ["10000", "2"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as folder:
        files = recorded(Path(folder), count)
        start, begun = time.perf_counter(), processor()
        kept = judged(files, processes)
        evaluated = time.perf_counter()
        page = Path(folder) / "page.html"
        with page.open("w", encoding="utf-8") as stream:
            html.write_page(kept, stream, "-i prod")
        ended, spent = time.perf_counter(), processor() - begun
        size = page.stat().st_size
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{count} hosts, {processes} processes: {ended - start:.1f} s ({evaluated - start:.1f} s to read and judge)")
    print(f"processor time {spent:.0f} s; page {size / 1e6:.1f} MB; peak memory {peaks(mine, theirs, processes)}")


def processor() -> float:
    """Seconds that this process and its workers have computed so far."""
    return sum(os.times()[:4])


def peaks(mine, theirs, processes: int) -> str:
    own, worker = mine.ru_maxrss // 1024, theirs.ru_maxrss // 1024
    return f"{own} MiB, and at most {worker} MiB in each of {processes} workers"


def judged(files: list[Path], processes: int) -> Compact:
    """What the page shows of all hosts, from chunks that workers judge."""
    kept = Compact({check.id: check for check in checks.load_all()})
    chunks = [files[place : place + CHUNK] for place in range(0, len(files), CHUNK)]
    with ProcessPoolExecutor(processes) as pool:
        for part in pool.map(_chunk, chunks):
            kept.merge(part)
    return kept


JUDGE = workflow.Judge(Choice())


def _chunk(files: list[Path]) -> Compact:
    kept = Compact({})
    for path in files:
        kept.add(JUDGE.result(factfile.load(path)))
    return kept


def recorded(folder: Path, count: int) -> list[Path]:
    """Fact files without the host's name in them: a host is called as its file is."""
    chance = random.Random(7)
    texts = {name: _machine(name) for name in set(MACHINES)}
    documents = []
    for number in range(min(count, DISTINCT)):
        documents.append(folder / f"document{number}")
        documents[-1].write_text(json.dumps(_varied(json.loads(texts[chance.choice(MACHINES)]), chance)))
    files = [folder / f"gpu{number:05}.json" for number in range(count)]
    for number, path in enumerate(files):
        path.symlink_to(documents[number % len(documents)])
    return files


def _machine(name: str) -> str:
    tests = paths.PACKAGE.parent / "tests" / "machines" / f"{name}.json"
    document = json.loads(tests.read_text())
    del document["host"]
    return json.dumps(document)


def _varied(document: dict, chance: random.Random) -> dict:
    facts = document["facts"]
    for name, fact in facts.items():
        if "each" in fact and any(word in name for word in ("temperature", "count", "error")):
            for one in fact["each"].values():
                if isinstance(one.get("value"), int) and chance.random() < 0.1:
                    one["value"] += chance.randint(0, 9)
    for name, value in DRIFT.items():
        if chance.random() < 0.05:
            facts[name] = {"value": value}
    facts["sysctl.net.core.rmem_max"] = {"value": 212992 + 4096 * chance.randint(0, 50)}
    if chance.random() < 0.02:
        document["facts"] = {
            name: {"unread": "permission denied: needs root (--become)"} if name.startswith("pci.") else fact
            for name, fact in facts.items()
        }
    return document


if __name__ == "__main__":
    main()
