"""One measurement manually: python3 -m nodetune.measurements NAME '{"option": 1}' [SECONDS]. Records as JSON lines, steps on stderr.

It runs as in a complete verify (in its own process, killed at its deadline), but does not wait for another verify.
"""

import json
import os
import sys

from nodetune.measurements.host import channel
from . import main


class Terminal:
    """Takes the place of a channel."""

    def say(self, event):
        for kind, content in event.items():
            if kind == "record":
                print(json.dumps(content, ensure_ascii=False), flush=True)
            elif kind in ("step", "note"):
                print("{}: {}".format(kind, content["text"]), file=sys.stderr, flush=True)

    def handles(self):
        return [], []

    def served(self, readable, writable):
        return []


def run(words):
    """Run one measurement and return the exit status."""
    try:
        name, options, seconds = words[0], json.loads((words[1:2] or ["{}"])[0]), float((words[2:3] or [0])[0])
    except (ValueError, IndexError):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    folder = os.path.dirname(os.path.abspath(__file__))
    if not os.path.exists(os.path.join(folder, name + ".py")) or not isinstance(options, dict):
        print("{}: unknown measurement, or options that are not a JSON object".format(name), file=sys.stderr)
        return 2
    try:
        main.Supervisor({"measurements": [{"name": name, "options": options, "seconds": seconds}]}, Terminal()).run()
    except channel.StoppedError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
