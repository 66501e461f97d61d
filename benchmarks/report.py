"""What an audit of thousands of saved hosts costs, as a page and as text: the command as a user starts it.

python benchmarks/report.py [HOSTS]      fact files of real and described machines, each a little different (see fleet.py)
"""

import os
import sys
import tempfile
from pathlib import Path

import fleet
from cost import measured_peak

from nodetune.facts import document


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as made:
        folder, report = Path(made) / "facts", Path(made) / "report"
        folder.mkdir()
        for host, _ in fleet.hosts(count, 1, 0):
            (folder / f"{host.host}.json").write_text(document.dump(host))
        size = sum(each.stat().st_size for each in folder.iterdir())
        print(f"{count} hosts, {size / 1e6:.0f} MB of facts, {len(os.sched_getaffinity(0))} cores")
        for form in ("html", "text"):
            words = [sys.executable, "-m", "nodetune", "audit", "--facts", folder, "--format", form, "-o", report]
            cpu, wall, peak = measured_peak(form, [*map(str, words), "--fail-on", "never"])
            told = f"wall {wall:5.1f} s   CPU {cpu:5.1f} s   largest process {peak:4.0f} MiB"
            print(f"{form:5} {told}   {report.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
