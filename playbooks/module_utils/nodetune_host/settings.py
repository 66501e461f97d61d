"""What a file of nodetune's says is to be set at boot: one line of JSON, which the next run on the host adds to."""

import json

from .problem import ChangeError, why

LINE = "# settings: "


def load(path):
    """Load the settings; none if the line is gone. Raise ChangeError."""
    try:
        with open(path) as opened:
            line = next((line for line in opened if line.startswith(LINE)), LINE + "{}")
        found = json.loads(line[len(LINE) :])
    except (OSError, ValueError) as error:
        raise ChangeError(f"{path}: {why(error)}") from None
    if not isinstance(found, dict):
        raise ChangeError(f"{path}: the line {LINE.strip()} holds no settings")
    return found
