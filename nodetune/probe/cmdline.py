"""Kernel arguments of the running kernel and of the next boot.

`cmdline.running` is the whole command line; `cmdline.running.NAME` and `cmdline.installed.NAME` are single arguments:
the value, an empty text for a bare flag, of repeated arguments the last one, as in the kernel. `cmdline.grub_later`
are the lines that set GRUB's default arguments after nodetune's file: [{"value", "file", "line"}].
"""

import os
import re

from . import read

GRUB_CONFIGS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
GRUB_ENVIRONMENTS = ("/boot/grub/grubenv", "/boot/grub2/grubenv")
BLS_FOLDER = "/boot/loader/entries"
KERNEL_CMDLINE = "/etc/kernel/cmdline"
IMAGE_HEADER = 1 << 16
"""Bytes of a kernel image that hold its version (Documentation/arch/x86/boot.rst: setup code, at most 32 KiB)."""
GRUB_SETTINGS = "/etc/default/grub.d"
OURS = "zz-nodetune.cfg"
SETS_DEFAULT = re.compile(r"^\s*(?:export\s+)?GRUB_CMDLINE_LINUX_DEFAULT(\+?=.*)$")
OPENS = re.compile(r"^\s*(menuentry|submenu)?\s*('[^']*'|\"[^\"]*\")?(.*)\{\s*$")


def collect(names, step):
    running = read.file_fact("/proc/cmdline", parse)
    yield "running", running
    step("boot loader configuration")
    installed = installed_arguments()
    yield "installed", installed
    for name in names:
        side, _, argument = name.partition(".")
        if name == "grub_later":
            yield name, read.tried(grub_later)
        if not argument:
            continue
        whole = running if side == "running" else installed
        yield name, _single(whole, argument, with_file=side == "installed")


def words(content):
    """Split a kernel command line, which has only double quotes; words after `--` belong to init."""
    parts = [part.replace('"', "") for part in re.findall(r'(?:[^\s"]|"[^"]*"?)+', content)]
    return parts[: parts.index("--")] if "--" in parts else parts


def parse(content):
    """Parse `a=1 b a=2 c="x y"` into {"a": "2", "b": "", "c": "x y"}: the last value of an argument counts."""
    return {name: setting for name, _, setting in (part.partition("=") for part in words(content))}


def _single(whole, argument, with_file):
    if "value" not in whole:
        return whole
    arguments = whole["value"]["arguments"] if with_file else whole["value"]
    for name in reversed(list(arguments)):
        if name.replace("-", "_") == argument.replace("-", "_"):  # the kernel takes one for the other
            found = arguments[name]
            return read.value({"value": found, "file": whole["value"]["file"]} if with_file else found)
    return read.absent("not on the kernel command line")


def installed_arguments():
    """Return the arguments of the entry that the boot loader will start."""
    entry = boot_entry()
    if "value" not in entry:
        return entry
    return read.value({"arguments": parse(entry["value"]["options"]), "file": entry["value"]["file"]})


def grub_later():
    """Return the lines of GRUB's settings files after nodetune's that set the default arguments. Raise OSError."""
    found = []
    for name in read.names_in(GRUB_SETTINGS):
        if not name.endswith(".cfg") or name <= OURS:
            continue
        path = os.path.join(GRUB_SETTINGS, name)
        for number, line in read.numbered_lines(path):
            setting = SETS_DEFAULT.match(line)
            if setting:
                found.append({"value": setting.group(1), "file": path, "line": number})
    return read.value(found)


def boot_entry():
    """Return the entry that the next boot starts: {"kernel", "options", "file"}."""
    problem = None
    for path in GRUB_CONFIGS:
        try:
            content = read.text(path)
            found = None if re.search(r"^\s*blscfg\b", content, re.M) else _from_grub(content, _environment())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as failed:
            problem = read.unread("{}: {}".format(path, read.why(failed)))
            continue
        if found is not None:
            return _described(found[0], found[1], path)
    entry = _from_entries()
    return entry or problem or read.absent("no boot loader configuration on this host")


def _described(image, options, path, version=None):
    """Return an entry as a fact. The version is in the image, or follows its stem: /vmlinuz-6.8.0-51-generic."""
    named = re.match(r"(?:vmlinu[xz]|[Ii]mage|kernel|linux)-(.+)$", os.path.basename(image))
    kernel = _version_inside(image) or version or (named.group(1) if named else None)
    plain = " ".join(part for part in options.split() if not part.startswith("$"))
    return read.value({"kernel": kernel, "options": plain, "file": path})


def _version_inside(image):
    """Return the version in the header of an x86 image, whatever the name of its file; None if it cannot be read.

    GRUB's paths begin at the root of a file system, which may be that of /boot.
    """
    for path in (image, "/boot" + image):
        try:
            content = read.raw_bytes(path, IMAGE_HEADER)
        except OSError:
            continue
        if content[0x202:0x206] == b"HdrS":
            text = content[0x200 + int.from_bytes(content[0x20E:0x210], "little") :]
            found = re.match(rb"\d+\.\d+[\w.+~-]*", text)
            return found.group().decode() if found else None
    return None


def _environment():
    """Return GRUB's saved variables, if any. Raise OSError if they cannot be read."""
    for path in GRUB_ENVIRONMENTS:
        try:
            return dict(re.findall(r"^([A-Za-z_]\w*)=(.*)$", read.text(path), re.M))
        except (FileNotFoundError, NotADirectoryError):
            continue
    return {}


def _from_grub(content, saved):
    """Return (image, options) of the menu entry that a grub.cfg starts by default, or None."""
    entries = list(_menu(content))
    chosen = (saved.get("next_entry") or _default(content, saved)).split(">")
    for linux, levels in entries:
        met = [part in level for part, level in zip(chosen, levels)]
        if all(met) and len(met) == len(chosen):
            return linux
    return entries[0][0] if entries else None


def _default(content, saved):
    settings = re.findall(r"^\s*set default=[\"']?([^\"'\n]*)", content, re.M)
    literal = [setting for setting in settings if "$" not in setting]
    if "${saved_entry}" in settings:
        return saved.get("saved_entry") or "0"
    return literal[-1] if literal else "0"


def _menu(content):
    """Yield ((image, options), the names of each level of the entry) of the entries that start a kernel."""
    blocks, counters = [], [0]
    for line in content.splitlines():
        opened = OPENS.match(line)
        linux = re.match(r"\s*linux(?:16|efi)?\s+(\S+)[ \t]*(.*)$", line)
        if opened:
            blocks.append((opened.group(1), _names(opened, counters)))
        elif line.strip() == "}" and blocks:
            if blocks.pop()[0] == "submenu":
                counters.pop()
        elif linux and blocks and blocks[-1][0] == "menuentry":
            yield linux.groups(), [names for kind, names in blocks if kind]


def _names(opened, counters):
    """Return the number, title and id of a menu entry; numbers restart in each submenu."""
    kind, title, rest = opened.groups()
    named = re.search(r"(?:--id|\$menuentry_id_option)\s+['\"]?([^'\"\s]+)", rest)
    number = str(counters[-1])
    if kind:
        counters[-1] += 1
    if kind == "submenu":
        counters.append(0)
    return number, (title or "")[1:-1], named.group(1) if named else None


def version_key(version):
    """Return a sort key for kernel versions: 6.8.0-100 after 6.8.0-51, a release after its candidates."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"\d+|[a-z]+", version)]


def _from_entries():
    """Return the default boot loader entry, or else the newest. Return None if there are no entries."""
    try:
        names = [name[:-5] for name in read.names_in(BLS_FOLDER) if name.endswith(".conf") and "rescue" not in name]
        if not names:
            return None
        saved = _environment()
        path = os.path.join(BLS_FOLDER, _chosen(names, saved) + ".conf")
        content = read.text(path)
    except OSError as failed:
        return read.unread("{}: {}".format(BLS_FOLDER, read.why(failed)))
    saved.setdefault("kernelopts", read.text_or(KERNEL_CMDLINE))
    options = " ".join(re.findall(r"^options\s+(.*)$", content, re.M))
    options = re.sub(r"\$(\w+)", lambda found: saved.get(found.group(1), ""), options)
    keys = dict(re.findall(r"^(linux|version)\s+(.*)$", content, re.M))
    return _described(keys.get("linux", ""), options, path, keys.get("version"))


def _chosen(names, saved):
    newest_first = sorted(names, key=version_key, reverse=True)
    chosen = saved.get("next_entry") or saved.get("saved_entry") or "0"
    if chosen in names:
        return chosen
    return newest_first[int(chosen)] if chosen.isdigit() and int(chosen) < len(names) else newest_first[0]
