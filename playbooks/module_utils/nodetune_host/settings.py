"""What a file of nodetune's says is to be set at boot: one line of JSON, which the next run on the host adds to."""

import json

from .problem import Problem, why

LINE = "# settings: "


def load(path):
    """The settings; none where the line is gone. Raises Problem."""
    try:
        with open(path) as opened:
            line = next((line for line in opened if line.startswith(LINE)), LINE + "{}")
        found = json.loads(line[len(LINE) :])
    except (OSError, ValueError) as error:
        raise Problem(f"{path}: {why(error)}") from None
    if not isinstance(found, dict):
        raise Problem(f"{path}: the line {LINE.strip()} holds no settings")
    return found
