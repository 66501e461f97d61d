"""How many recorded hosts one core evaluates in a second, and how memory grows.

python benchmarks/evaluate.py [HOSTS]: evaluates a bundled machine over and over, as distinct hosts.
"""

import json
import resource
import sys
import time

from nodetune import factfile, paths, workflow
from nodetune.choice import Choice
from nodetune.outcome import summarise


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    documents = [path.read_text() for path in sorted(paths.bundled("machines").glob("*.json"))]
    judge = workflow.Judge(Choice())
    judge.result(factfile.from_data(json.loads(documents[0])))
    start, results = time.process_time(), []
    parsing = 0.0
    for number in range(count):
        before = time.process_time()
        facts = factfile.from_data(json.loads(documents[number % len(documents)]), f"gpu{number:05}")
        parsing += time.process_time() - before
        results.append(judge.result(facts))
    spent = time.process_time() - start
    checks = sum(summarise(results).statuses.values()) // count
    print(f"{count} hosts, {checks} checks each: {count / (spent - parsing):.0f} evaluated a second on one core")
    print(
        f"reading their fact files too: {count / spent:.0f} a second; peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB"
    )


if __name__ == "__main__":
    main()
