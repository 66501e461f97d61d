"""Run the system's tools: with limits for time and output, in the C locale, never through a shell."""

from .onhost import command
from .problem import ChangeError

TOOL_PATH = command.PATH
last_line = command.last_line


def find(name):
    """Return the full path of a command in the system's folders, or None."""
    return command.find(name, path=TOOL_PATH)


def attempt(argv, seconds=60):
    """Run a command and return (exit status, its output, its errors) as texts.

    Raise ChangeError if it is not on this host or does not end within `seconds`; it is then killed with its children.
    """
    tool = argv[0] if argv[0].startswith("/") else find(argv[0])
    if not tool:
        raise ChangeError(f"{argv[0]} is not on this host")
    environment = {"PATH": TOOL_PATH, "LC_ALL": "C", "HOME": "/root"}
    try:
        return command.attempt([tool, *argv[1:]], seconds, " ".join(argv), environment=environment)
    except command.CommandError as failed:
        raise ChangeError(str(failed)) from None


def run(argv, seconds=60):
    """Run a command and return its output. Raise ChangeError with its last line of errors if it fails."""
    status, out, err = attempt(argv, seconds)
    if status:
        last = last_line(err) or last_line(out) or "no message"
        raise ChangeError(f"{' '.join(argv)} failed ({command.status_text(status)}): {last}")
    return out
