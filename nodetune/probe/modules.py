"""Kernel modules: the loaded ones, and their configuration: `modules.*`.

By name: `parameters.MODULE.PARAMETER` (the current value), `options.MODULE.PARAMETER` (the value in modprobe.d),
`blacklist.MODULE`, `autoload.MODULE` (modules-load.d), `available.MODULE` (the running kernel's file) and
`depends.MODULE` (its dependencies).
"""

import os
import platform
import re

from . import cmdline, read

REBUILT = ("nvidia", "nvidia_uvm", "nvidia_peermem", "nvidia_fs", "gdrdrv", "mlx5_core", "ib_core", "lustre")
"""Modules that packages replace on disk while the old ones keep running."""


def collect(names, step):
    step("/proc/modules")
    loaded = read.file_fact("/proc/modules", lambda content: sorted(line.split()[0] for line in content.splitlines()))
    yield "loaded", loaded
    if "versions" in names:
        step("modinfo")
        yield "versions", read.tried(_versions, loaded)
    for name in names:
        kind, _, rest = name.partition(".")
        if kind == "parameters" and "." in rest:
            yield name, _parameter(*rest.split(".", 1))
        elif kind == "available":
            yield name, read.tried(_available, rest)
        elif kind == "depends":
            yield name, read.tried(_depends, rest)
        elif kind in ("options", "blacklist", "autoload"):
            step("modprobe.d")
            yield name, _configured(kind, rest)


def _same(name):
    """Normalise a module's name: modules have underscores, but files and people also write dashes."""
    return name.replace("-", "_")


def _parameter(module, parameter):
    if not read.exists("/sys/module/" + _same(module)):
        return read.absent("{} is not loaded".format(module))
    return read.file_fact("/sys/module/{}/parameters/{}".format(_same(module), parameter), read.number_or_text)


def _available(name):
    """Return the module's file for the running kernel from depmod, or the kernel's text for a built-in one."""
    folder = "/lib/modules/" + platform.release()
    for part, end in (("modules.dep", ":"), ("modules.builtin", "$")):
        try:
            content = read.text(os.path.join(folder, part), 8 << 20)
        except (FileNotFoundError, NotADirectoryError):
            continue
        for path in re.findall(r"^(\S+?\.ko[.\w]*)" + end, content, re.M):
            if _module_of(path) == _same(name):
                return read.value(path)
    return read.absent("the running kernel has no such module")


def _depends(name):
    """Return the dependencies of a module of the running kernel according to depmod, including indirect ones."""
    path = "/lib/modules/{}/modules.dep".format(platform.release())
    for line in read.text(path, 8 << 20).splitlines():
        file, _, needed = line.partition(":")
        if _module_of(file) == _same(name):
            return read.value([_module_of(each) for each in needed.split()])
    return read.absent("the running kernel has no such module")


def _module_of(path):
    return _same(os.path.basename(path).partition(".")[0])


def _lines(folders):
    """Return (words, file, line number) of every line, with continued lines joined, or the error."""
    found, contents = [], read.contents_that_win(folders)
    if isinstance(contents, dict):
        return contents
    for path, content in contents:
        number = 1
        for line in content.replace("\\\n", " \0").split("\n"):
            words = line.replace("\0", "").split()
            if words and words[0][0] not in "#;":
                found.append((words, path, number))
            number += 1 + line.count("\0")
    return found


def _configured(kind, rest):
    lines = _lines(read.config_folders("modules-load.d" if kind == "autoload" else "modprobe.d"))
    if isinstance(lines, dict):
        return lines
    if kind == "options":
        return _option(lines, *rest.split(".", 1))
    return _blacklisted(lines, rest) if kind == "blacklist" else _autoloaded(lines, rest)


def _autoloaded(lines, module):
    for words, path, number in lines:
        if _same(words[0]) == _same(module):
            return read.value({"value": "loaded", "file": path, "line": number})
    return read.absent("no modules-load.d file names it")


def _option(lines, module, parameter):
    """Return the last line that sets the option: options accumulate, and the last one wins in the kernel."""
    fact = read.absent("no modprobe.d file sets it")
    for words, path, number in lines:
        if words[0] == "options" and len(words) > 2 and _same(words[1]) == _same(module):
            for name, _, setting in (word.partition("=") for word in words[2:]):
                if _same(name) == _same(parameter):
                    wanted = read.number_or_text(setting.strip('"'))
                    fact = read.value({"value": wanted, "file": path, "line": number})
    return fact


def _blacklisted(lines, module):
    """Return what prevents the module from loading for its device: a blacklist or install line, a kernel argument."""
    for words, path, number in lines:
        if len(words) < 2:
            continue
        refused = words[0] == "blacklist" or (words[0] == "install" and re.search(r"/(true|false)$", words[-1]))
        if refused and _same(words[1]) == _same(module):
            return read.value({"value": words[0], "file": path, "line": number})
    for word in cmdline.words(read.text_or("/proc/cmdline")):
        name, _, setting = word.partition("=")
        if name in ("modprobe.blacklist", "module_blacklist") and _same(module) in map(_same, setting.split(",")):
            return read.value({"value": name, "file": "/proc/cmdline"})
    return read.absent("nothing blacklists it")


def _versions(loaded):
    """Return {module: {"loaded", "installed"}} of the loaded modules that packages replace.

    The value is the version, or the build if there is none.
    """
    if "value" not in loaded:
        return loaded
    ours = [name for name in REBUILT if name in loaded["value"]]
    tool = read.find_tool("modinfo")
    if not ours or tool is None:
        return read.absent("modinfo is not installed here") if ours else read.value({})
    found = {}
    for name in ours:
        output = read.run([tool, name])
        found[name] = _compared(name, dict(re.findall(r"^(version|srcversion):\s+(\S+)", output, re.M)))
    return read.value({name: each for name, each in found.items() if each})


def _compared(name, installed):
    """Return versions if they differ, otherwise source checksums; None if the module has neither."""
    pairs = []
    for field in ("version", "srcversion"):
        now = read.text_or("/sys/module/{}/{}".format(name, field))
        if now and field in installed:
            pairs.append({"loaded": now, "installed": installed[field]})
    differing = [pair for pair in pairs if pair["loaded"] != pair["installed"]]
    return (differing or pairs or [None])[0]
