"""What settings_move_figures.py and tuning_finds_best.py change: disks, networks and limits that nothing else uses."""

import contextlib
import os
import secrets
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.support.measuring import UnavailableError
from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.verify import remote

CONTROL_GROUP = Path("/sys/fs/cgroup/blkio")


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise UnavailableError(f"{' '.join(map(str, words[:4]))}: {(done.stderr or done.stdout).strip()[:150]}")
    return done.stdout.strip()


@contextlib.contextmanager
def loop_disk(folder, options="rw"):
    """An ext4 on a loop disk with its own read-ahead and dirty limits: (where it is mounted, its settings in /sys)."""
    image, place = Path(folder) / "disk.img", Path(folder) / "mnt"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(2 << 30)
    run("mkfs.ext4", "-q", "-F", image)
    device = run("losetup", "--find", "--show", "--direct-io=on", image)
    try:
        run("mount", "-o", options, device, place)
        number = Path(device).stat().st_rdev
        yield place, Path(f"/sys/class/bdi/{os.major(number)}:{os.minor(number)}")
    finally:
        subprocess.run(["umount", place], check=False)
        run("losetup", "-d", device)


@contextlib.contextmanager
def slow_disk(settings, operations):
    """A control group whose reads of that disk are limited to so many a second: words to start a program in it with."""
    limit = CONTROL_GROUP / "blkio.throttle.read_iops_device"
    if not limit.exists() and not (CONTROL_GROUP / "nodetune-bench").exists():
        raise UnavailableError("no blkio control group (cgroup v1) to slow a disk with")
    group = CONTROL_GROUP / "nodetune-bench"
    group.mkdir(exist_ok=True)
    try:
        (group / limit.name).write_text(f"{settings.name} {operations}")
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        end = time.monotonic() + 10
        while (group / "cgroup.procs").read_text() and time.monotonic() < end:
            time.sleep(0.05)  # what was killed may still be ending
        group.rmdir()


@contextlib.contextmanager
def _namespaces(folder, network):
    """Two network namespaces, as targets. `network` joins them by a device eth0 in each."""
    run_id = secrets.token_hex(3)
    names = [f"nt{run_id}-{number}" for number in range(2)]
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        with network(names):
            for number, name in enumerate(names):
                run("ip", "-n", name, "addr", "add", f"10.199.9.{number + 1}/24", "dev", "eth0")
                run("ip", "-n", name, "link", "set", "eth0", "up")
            yield [_target(folder, name) for name in names]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def two_hosts(folder):
    """Two network namespaces joined by a link of 1 Gb/s, as targets."""
    return _namespaces(folder, _cable)


@contextlib.contextmanager
def _cable(names):
    run("ip", "-n", names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", names[1])
    yield


def distant_hosts(folder, megabits, milliseconds):
    """Two network namespaces joined by a link of that rate, and of that delay each way, as targets."""
    return _namespaces(folder, partial(_long_line, megabits=megabits, milliseconds=milliseconds))


@contextlib.contextmanager
def _long_line(names, megabits, milliseconds):
    words = [sys.executable, Path(__file__).with_name("delayed_link.py"), *names, str(megabits), str(milliseconds)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as link:
        if link.stdout.readline() != "ready\n":
            raise UnavailableError("no TUN device on this machine")
        for name in names:
            run("ip", "-n", name, "link", "set", "eth0", "mtu", "9000")
        yield


@contextlib.contextmanager
def bulk_sent(targets, megabits):
    """Have the first host send that much UDP to the second one all the time, by iperf3: it does not slow down when packets are lost."""
    first, second = ("ip netns exec " + target.name for target in targets)
    with subprocess.Popen(
        [*second.split(), "iperf3", "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            time.sleep(1)
            words = [*first.split(), *f"iperf3 -u -c 10.199.9.2 -t 0 -l 1400 -b {megabits}M".split()]
            with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as sender:
                try:
                    time.sleep(1)
                    if sender.poll() is not None:
                        raise UnavailableError("no iperf3 here, or it does not reach the other host")
                    yield
                finally:
                    sender.kill()
        finally:
            server.kill()


def set_buffers(targets, **sizes):
    """Set net.ipv4.tcp_rmem or tcp_wmem of such hosts."""
    for target in targets:
        for name, size in sizes.items():
            run("ip", "netns", "exec", target.name, "sysctl", "-qw", f"net.ipv4.tcp_{name}={size}")


def _target(folder, name):
    own_run = "mount -t tmpfs none /run && exec"  # each host has its own
    words = f"exec ip netns exec {name} sh -c '{own_run} {sys.executable} \"$@\"' sh"
    return _with_python(folder, name, words)


def posed_hosts(folder):
    """Two targets on this machine that NCCL takes for two hosts, so that their ranks may share the first GPU.

    Each has a /run of its own, and does not see the other's process on the GPU. The ranks go over TCP sockets of the loopback.
    """
    if not Path("/dev/nvidiactl").exists():
        raise UnavailableError("no NVIDIA GPU here")
    own = "mount -t tmpfs none /run && exec"
    posed = "NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0"
    spaces = "unshare -m -p -f --kill-child --mount-proc"
    return [
        _with_python(
            folder, name, f"export NCCL_HOSTID={name} {posed}\nexec {spaces} sh -c '{own} {sys.executable} \"$@\"' sh"
        )
        for name in ("posed0", "posed1")
    ]


def _with_python(folder, name, words):
    python = Path(folder) / name
    python.write_text(f'#!/bin/sh\n{words} "$@"\n')
    python.chmod(0o755)
    return Target(name, connection="local", python=str(python))


def pair(targets, **options):
    """Records of tcp between two hosts, by metric; of both ways the one towards the first host."""
    records = together(targets, "tcp", options)
    return {each["metric"]: each for each in records if each["subject"].endswith("→" + targets[0].name)}


def together(targets, name, options, **env):
    """Records of one measurement in which all targets take part."""
    plan = {
        "measurements": [{"name": name, "options": options, "seconds": 120.0}],
        "env": env,
        "group": {"hosts": [target.name for target in targets]},
    }
    reach = ConnectionOptions(options=SessionOptions(seconds=120))
    events = [event for _, event in remote.measure(targets, lambda _: plan, reach)]
    records = [event["record"] for event in events if isinstance(event, dict) and "record" in event]
    failed = [each for each in records if "samples" not in each]
    if failed or not records:
        raise UnavailableError(str(failed[:1]))
    return records
