"""Unpack archives on every Python: the filters of tarfile came with 3.11.4 and 3.10.12, and Debian 12 has 3.11.2."""

import tarfile


def unpack(path, folder):
    with tarfile.open(path) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        archive.extractall(folder)
