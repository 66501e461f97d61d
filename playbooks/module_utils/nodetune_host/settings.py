"""The settings for boot in one of nodetune's files: one line of JSON, to which the next run on the host adds."""

import json

from .problem import ChangeError, why

LINE = "# settings: "


def load(path):
    """Load the settings; empty if the line is missing. Raise ChangeError."""
    try:
        with open(path) as opened:
            line = next((line for line in opened if line.startswith(LINE)), LINE + "{}")
        found = json.loads(line[len(LINE) :])
    except (OSError, ValueError) as error:
        raise ChangeError(f"{path}: {why(error)}") from None
    if not isinstance(found, dict):
        raise ChangeError(f"{path}: the line {LINE.strip()} has no settings")
    return found
