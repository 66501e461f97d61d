"""Files of the kernel that a site asks for by path: `sysfs.PATH`. Of a choice (`always [madvise] never`) the chosen word."""

from . import read


def collect(names, step):
    for path in names:
        step(path)
        if path.startswith("/sys/") and ".." not in path:
            yield path, read.file_fact(path, _value)
        else:
            yield path, read.unread("{} is no file under /sys".format(path))


def _value(content):
    return read.number_or_text(read.chosen(content))
