"""The running and the next kernel, its clock source, its mitigations, its NVIDIA driver: `kernel.*`."""

import os
import platform
import re
import stat

from . import cmdline, read

CLOCKS = "/sys/devices/system/clocksource/clocksource0"
VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
MODULES = "/lib/modules"
DRIVER = "/proc/driver/nvidia/version"
DEVICE_FOLDERS = ("/run/nvidia/driver/dev", "/dev")
"""Where the driver's device files are: with a driver container, in its file system, from which containers get them."""
LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
)
VENDOR_KERNELS = re.compile(r"\.el\d|\.amzn2\.|-150\d{3}|-default$|\.fc\d|\.ocp|\.uek", re.I)
"""Their versions say where they branched off, not which fixes they contain."""


def collect(names, step):
    running = platform.release()
    step("clock source")
    yield "clocksource", read.file_fact(CLOCKS + "/current_clocksource")
    yield "clocksources", read.file_fact(CLOCKS + "/available_clocksource", str.split)
    step("vulnerabilities")
    yield "vulnerabilities", read.tried(_vulnerabilities)
    step("/boot")
    yield from _kernels(running)
    yield "upstream", _upstream(running)
    yield "init_on_alloc", _init_on_alloc(running)
    step("NVIDIA driver")
    yield "nvidia_module_version", read.file_fact("/sys/module/nvidia/version")
    yield "nvidia_flavour", read.file_fact(DRIVER, _flavour)
    yield "nvidia_uvm_files", read.tried(_uvm_files)
    yield "nvidia_libraries", _libraries()


def _uvm_files():
    """Return which device files of nvidia_uvm are missing, and the program that makes them for any user, if any."""
    folder = next((each for each in DEVICE_FOLDERS if _status(each)), None)
    if folder is None:
        return read.absent("no /dev on this host")
    missing = [name for name in ("nvidia-uvm", "nvidia-uvm-tools") if not _status(os.path.join(folder, name))]
    tool = read.find_tool("nvidia-modprobe") if folder == "/dev" else None
    made = tool if tool and _status(tool).st_mode & stat.S_ISUID else None
    return read.value({"folder": folder, "missing": missing, "made_by": made})


def _status(path):
    """Return the status of a file, or None if it does not exist. Raise OSError if that cannot be seen."""
    try:
        return os.stat(read.ROOT + path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _vulnerabilities():
    names = read.names_in(VULNERABILITIES)
    if not names:
        return read.absent("this kernel does not report CPU vulnerabilities")
    return read.each({name: read.file_fact(os.path.join(VULNERABILITIES, name)) for name in names})


def _kernels(running):
    """Yield kernels with an image, the newest of the running flavour, the next to boot, and its NVIDIA module."""
    try:
        installed = _installed()
    except OSError as problem:
        installed = []
        missing = read.unread("/boot: {}".format(read.why(problem)))
    else:
        missing = read.absent("no kernel image in /boot: something outside this system starts it")
    yield "installed", read.value(installed) if installed else missing
    alike = [version for version in installed if flavour(version) == flavour(running)]
    newest = (
        read.value(alike[-1]) if alike else missing if not installed else read.absent("none of the running flavour")
    )
    yield "newest", newest
    following = _following(newest)
    yield "next", following
    yield "next_nvidia_module", read.tried(_nvidia_module, following["value"]) if "value" in following else following


def _following(newest):
    """Return the kernel of the boot loader's default entry, or the newest if there is no configuration."""
    entry = cmdline.boot_entry()
    if "value" not in entry:
        return entry if "unread" in entry else newest
    if entry["value"]["kernel"] is None:
        return read.unread("{}: its default entry does not name a kernel version".format(entry["value"]["file"]))
    return read.value(entry["value"]["kernel"])


def _installed():
    """Return versions with an image: vmlinuz-VERSION in /boot, VERSION/linux under /boot/ID, or with the modules."""
    found = set()
    for name in read.names_in("/boot"):
        image = re.match(r"vmlinu[xz]-(\d.*)$", name)
        if image and "rescue" not in name:
            found.add(image.group(1))
        elif re.match(r"[0-9a-f]{32}$", name):
            found.update(each for each in read.names_in("/boot/" + name) if re.match(r"\d+\.", each))
    found.update(name for name in read.names_in(MODULES) if read.exists("{}/{}/vmlinuz".format(MODULES, name)))
    return sorted(found - {"0"}, key=cmdline.version_key)


def flavour(version):
    """Return what distinguishes series of kernels: 6.8.0-51-generic → generic, …el9_4.x86_64+64k → el, x, k."""
    return re.findall(r"[a-z]+", version.partition("-")[2] or version.partition("+")[2])


def _nvidia_module(version):
    """Return where depmod found the NVIDIA module of a kernel; absent if that kernel would boot without one."""
    path = "{}/{}/modules.dep".format(MODULES, version)
    try:
        found = re.search(r"^(\S*/nvidia\.ko\S*):", "\n" + read.text(path, 8 << 20), re.M)
    except (FileNotFoundError, NotADirectoryError):
        return read.absent("no module list for {}".format(version))
    return read.value(found.group(1)) if found else read.absent("no NVIDIA module built for {}".format(version))


def _upstream(running):
    """Return the upstream version whose fixes the kernel has, if it can be determined."""
    ubuntu = re.search(r"(\d+\.\d+\.\d+)$", read.text_or("/proc/version_signature"))
    debian = re.search(r"\bDebian (\d+\.\d+\.\d+)", read.text_or("/proc/version"))
    if ubuntu or debian:
        return read.value((ubuntu or debian).group(1))
    plain = re.match(r"\d+\.\d+\.\d+", running)
    if VENDOR_KERNELS.search(running) or not plain:
        return read.absent("a vendor's kernel: its version does not say which fixes it has")
    return read.value(plain.group(0))


def _init_on_alloc(running):
    """Return whether the kernel zeroes allocated memory, "0" or "1": by its argument or its configuration."""
    argument = cmdline.parse(read.text_or("/proc/cmdline")).get("init_on_alloc")
    if argument is not None:
        return read.value("0" if argument.lower() in ("0", "off", "n", "no") else "1")
    for path in ("/boot/config-" + running, "{}/{}/config".format(MODULES, running)):
        fact = read.file_fact(path, lambda content: "1" if "\nCONFIG_INIT_ON_ALLOC_DEFAULT_ON=y" in content else "0")
        if "absent" not in fact:
            return fact
    return read.unread("neither the command line nor a kernel configuration says so")


def _flavour(content):
    return "open" if "Open Kernel Module" in content else "proprietary"


def _libraries():
    """Return the version of the NVML library behind each folder's link."""
    found = {}
    for folder in LIBRARY_FOLDERS:
        path = os.path.join(folder, "libnvidia-ml.so.1")
        version = re.search(r"\.so\.(\d+\.\d+[\d.]*)$", read.real(path))
        if read.exists(path) and version:
            found[path] = version.group(1)
    return read.each_value(found) if found else read.absent("no NVML library in the usual folders")
