"""The reporter as in its pod, for the tests of the guard."""

import contextlib
import json
import subprocess
import sys
import time

from nodetune.guard.node import records

FAILS = {"verdict": "fail", "findings": [{"check": "gpu-lost", "subjects": "GPU3: lost"}], "unknown": []}


@contextlib.contextmanager
def reporting(program, api, **settings):
    """Run the program's reporter of node n01, with these settings of nodetune.guard.node.report."""
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port), "NODE_NAME": "n01"}
    given = {"TOKENS": str(api.folder), "TICK_SECONDS": 0.02, "JITTER_SECONDS": 0.1, **settings}
    code = (
        f"import sys; sys.path.insert(0, {str(program)!r}); from nodetune.guard.node import main, report;"
        f"vars(report).update({given!r});"
        f"sys.exit(main.main(['report', '--result', {str(api.folder)!r}, '--enforce', 'all']))"
    )
    command = [sys.executable, "-I", "-S", "-c", code]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "nodetune: n01: enforced: all\n"
        try:
            yield child
        finally:
            child.kill()


def look_until(api, child, reached):
    """Find the same fault again and again until then."""
    while not reached():
        assert child.poll() is None
        records.write(str(api.folder / "health.json"), json.dumps(FAILS))
        time.sleep(0.05)
