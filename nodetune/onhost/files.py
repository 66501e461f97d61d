"""Small files of /proc and /sys."""


def text(path):
    """Return the content without surrounding blanks; empty if it cannot be read."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""
