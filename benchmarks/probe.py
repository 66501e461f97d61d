"""How long the whole probe takes on this machine, beside a bare interpreter: seconds, and their ratio, in one run."""

import statistics
import subprocess
import sys
import time

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.remote import payload


def seconds(script: bytes) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-"], input=script, capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    names = evaluate.required_facts(checks.load_all())
    script, _ = payload.script(payload.families(names), 20.0)
    bare, full = [], []
    for _ in range(11):
        bare.append(seconds(b"pass"))
        full.append(seconds(script))
    print(f"script {len(script) // 1024} KiB, {len(names)} facts asked for")
    print(
        f"bare python3 {statistics.median(bare) * 1000:.0f} ms, probe {statistics.median(full) * 1000:.0f} ms, "
        f"ratio {statistics.median(b / a for a, b in zip(bare, full, strict=True)):.1f}"
    )


if __name__ == "__main__":
    main()
