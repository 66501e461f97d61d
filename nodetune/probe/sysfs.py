"""Files under /sys that a site requests by path: `sysfs.PATH`. For a choice (`a [b] c`), the chosen word."""

from . import read


def collect(names, step):
    for path in names:
        step(path)
        if path.startswith("/sys/") and ".." not in path:
            yield path, read.file_fact(path, _value)
        else:
            yield path, read.unread("{} is not a file under /sys".format(path))


def _value(content):
    return read.number_or_text(read.chosen(content))
