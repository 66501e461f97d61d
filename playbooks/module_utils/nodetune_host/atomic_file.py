"""Write and remove files completely or not at all, even if power fails."""

import errno
import os
import shutil


def replace(path, content, mode, uid=None, gid=None, attributes=None):
    """Write a file completely or not at all, even if power fails: a reader sees the old bytes or the new ones.

    Extended attributes (the SELinux label, ACLs) of the old file are kept; it gets those of `attributes` that it lacks.
    Raise OSError.
    """
    folder = os.path.dirname(path)
    made = missing_folder(path)
    try:
        make_folders(folder)
        tidy(path)
        part = part_of(path)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
            opened.flush()
            if uid is not None and (uid, gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle, uid, gid)
            _set_attributes(handle, {**(attributes or {}), **attributes_of(path)})
            os.fchmod(handle, mode)
            os.fsync(handle)
        os.rename(part, path)
    except BaseException:
        tidy(path)
        remove_empty_folders(folder, made)
        raise
    sync_folder(folder)


def remove(path, made):
    """Remove the file, then the folders from it up to `made` that nobody else uses."""
    folder = os.path.dirname(path)
    if os.path.lexists(path):
        os.unlink(path)
        sync_folder(folder)
    remove_empty_folders(folder, made)


def remove_empty_folders(folder, made):
    """Remove this folder and those above it up to `made`, as far as they are empty."""
    while made and (folder + "/").startswith(made + "/"):
        try:
            os.rmdir(folder)
            sync_folder(os.path.dirname(folder))
        except FileNotFoundError:
            pass
        except OSError:
            return
        folder = os.path.dirname(folder)


def make_folders(folder, mode=0o755):
    """Make folders like makedirs, whatever the umask, and durable over a power cut."""
    if os.path.isdir(folder):
        return
    make_folders(os.path.dirname(folder), mode)
    os.mkdir(folder, 0o700)
    os.chmod(folder, mode)
    sync_folder(os.path.dirname(folder))


def missing_folder(path):
    """Return the topmost folder above a path that does not exist, or None."""
    missing = None
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        missing, folder = folder, os.path.dirname(folder)
    return missing


def part_of(path):
    """Return the path where new content is written before it replaces the file.

    The name is fixed so that files of killed runs are found and never accumulate. It has no suffix that a *.d folder
    is read by.
    """
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)[:200]}.nodetune-part")


def tidy(path):
    """Remove the leftovers of a killed run next to a file, or next to a folder that it unpacked."""
    part = part_of(path)
    try:
        os.unlink(part)
    except IsADirectoryError:
        shutil.rmtree(part, ignore_errors=True)
    except OSError:
        pass


def sync_folder(folder):
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def attributes_of(file):
    """Return the extended attributes of a file (a path or an open file): {name: bytes}."""
    try:
        return {name: os.getxattr(file, name) for name in os.listxattr(file)}
    except OSError:
        return {}


def _set_attributes(handle, attributes):
    for name, value in attributes.items():
        try:
            os.setxattr(handle, name, value)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES):
                raise
