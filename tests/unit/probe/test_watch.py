"""How the work of a busy node is read: GPM's averages, counters that wrap, GPUs and processes that go away."""

import ctypes
import os
import subprocess
import sys
import types

import pynvml
import pytest

from nodetune.probe import nvml, read, watch, watch_gpu, watch_host, watch_processes, watch_waits
from tests.support import fake_pynvml

SECONDS = "seconds.1"
NAMES = ["gpus", "processes", "host", "users", SECONDS]
PERCENT, RATE = 40.0, 1000.0


class Counting:
    """GPM of a GPU: each sample has a number, and metrics need two of one GPU."""

    def __init__(self, supported=1, errors=None):
        self.supported, self.errors, self.samples, self.freed = supported, errors or {}, [], 0

    def fit(self, library):
        """Replace the functions of GPM in a pynvml."""
        library.nvmlGpmQueryDeviceSupport = lambda handle: types.SimpleNamespace(isSupportedDevice=self._ask("support"))
        library.nvmlGpmSampleAlloc = self._alloc
        library.nvmlGpmSampleGet = lambda handle, sample: self._ask("sample")
        library.nvmlGpmSampleFree = self._free
        library.nvmlGpmMetricsGet = self._metrics
        return library

    def _ask(self, what):
        self.errors.setdefault("asked", []).append(what)
        number = self.errors.get(what)
        if number is not None:
            raise pynvml.NVMLError(number)
        return self.supported

    def _alloc(self):
        self.samples.append(ctypes.pointer(pynvml.struct_c_nvmlGpmSample_t()))
        return self.samples[-1]

    def _free(self, sample):
        self.freed += 1

    def _metrics(self, asked):
        for metric in asked.metrics[: asked.numMetrics]:
            is_rate = metric.metricId >= pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC
            missing = metric.metricId == pynvml.NVML_GPM_METRIC_C2C_DATA_TX_PER_SEC
            metric.nvmlReturn, metric.value = 3 if missing else 0, RATE if is_rate else PERCENT


@pytest.fixture
def fitted(monkeypatch):
    """fitted(Counting(), Replay()) makes the collector use them."""

    def fit(gpm, replay=None, pids=()):
        replay = replay or fake_pynvml.Replay(count=2)
        processes = [types.SimpleNamespace(pid=pid, usedGpuMemory=1) for pid in pids]
        replay.answers.setdefault("nvmlDeviceGetComputeRunningProcesses GPU0", processes)
        library = gpm.fit(fake_pynvml.module(replay))
        monkeypatch.setattr(nvml, "load", lambda: library)
        return library

    return fit


@pytest.fixture
def busy():
    """A process with a child, as a job has them."""
    program = "import subprocess, sys; p = subprocess.Popen(['sleep', '600']); print('ready', flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline()
        yield process
        subprocess.run(["pkill", "-P", str(process.pid)], check=False)
        process.kill()


def test_gpm_gives_averages_in_percent_and_megabytes(collect, fitted):
    gpm = Counting()
    fitted(gpm)
    found = collect("watch", NAMES)["watch.gpus"]["each"]["GPU0"]["value"]
    assert found["gpm"]["sm"] == PERCENT
    assert found["gpm"]["pcie_rx"] == pytest.approx(RATE * (1 << 20) / 1e6, rel=1e-4)
    assert "c2c_tx" not in found["gpm"], "this GPU does not count it"
    assert "no_gpm" not in found
    assert gpm.freed == len(gpm.samples) - 2, "one sample of each GPU is kept"


def test_a_watch_reads_the_power_brake_where_this_driver_counts_it(collect, fitted):
    fields = {"field 253": 0, "field 271": 0}
    for driver, held in (("570.86.15", {}), ("575.57.08", {"power_brake": 0.0}), ("580.159.04", {"power_brake": 0.0})):
        fitted(Counting(), fake_pynvml.Replay(count=1, answers={**fields, "nvmlSystemGetDriverVersion": driver}))
        assert collect("watch", NAMES)["watch.gpus"]["each"]["GPU0"]["value"]["held"] == held, driver


def test_a_gpu_without_gpm_says_why_and_keeps_the_rest(collect, fitted):
    fitted(Counting(supported=0))
    found = collect("watch", NAMES)["watch.gpus"]["each"]["GPU1"]["value"]
    assert (found["gpm"], found["no_gpm"]) == (None, watch_gpu.NEEDS_HOPPER)
    assert found["util"] >= 0


@pytest.mark.parametrize(
    ("error", "text"), [(13, watch_gpu.OLD_DRIVER), (4, "no permission"), (3, watch_gpu.NEEDS_HOPPER)]
)
def test_an_error_of_gpm_is_named(collect, fitted, error, text):
    fitted(Counting(errors={"sample": error}))
    found = collect("watch", NAMES)["watch.gpus"]["each"]["GPU0"]["value"]
    assert found["gpm"] is None
    assert text in found["no_gpm"]


def test_a_gpu_that_is_lost_during_the_watch_is_unread(collect, fitted):
    fitted(Counting(), fake_pynvml.Replay(count=2, errors={"nvmlDeviceGetUtilizationRates GPU1": 15}))
    found = collect("watch", NAMES)["watch.gpus"]["each"]
    assert "lost" in found["GPU1"]["unread"]
    assert found["GPU0"]["value"]["gpm"]


def test_a_process_is_watched_with_those_it_started(collect, fitted, busy):
    fitted(Counting(), pids=[busy.pid])
    found = collect("watch", NAMES)
    processes = found["watch.processes"]["value"]
    assert processes[str(busy.pid)]["gpus"] == ["GPU0"]
    assert processes[str(busy.pid)]["looks"] > 2
    child = next(each for pid, each in processes.items() if int(pid) != busy.pid)
    assert (child["above"], child["gpus"], child["name"]) == (busy.pid, [], "sleep")
    assert child["doing"] == {"sleep": 1.0}
    assert found["watch.users"]["value"][str(os.getuid())]


def test_a_process_that_ends_is_marked(monkeypatch, busy):
    process = watch_processes.Process(busy.pid, busy.pid)
    process.look()
    busy.kill()
    busy.wait()
    process.look()
    told = process.told()
    assert told["ended"]
    assert told["looks"] == 1


def test_a_process_that_is_not_visible_is_left_out():
    assert watch_processes.Processes({"GPU0": [1 << 30]}).told() == {}


@pytest.mark.parametrize(
    ("before", "after", "rise"),
    [(5, 9, 4), ((1 << 32) - 10, 20, 30), ((1 << 40) + 5, 3, None), (3_000_000, 10, None)],
)
def test_a_counter_of_32_bits_may_wrap_and_others_begin_again(before, after, rise):
    assert watch_host.rise(before, after) == rise


def test_counters_that_appear_or_vanish_are_left_out():
    assert watch_host.rises({"gone": 1, "stays": 1}, {"stays": 4, "new": 9}) == {"stays": 3}


DISKS = " 8 0 sda 9 0 {} 0 0 0 {} 0 0 {} 0\n 7 0 loop0 9 0 99 0 0 0 99 0 0 99 0\n"


def test_disks_links_and_pressure_become_rates(tree):
    files = {
        "/proc/diskstats": DISKS.format(0, 0, 0),
        "/sys/block/sda/device/": None,
        "/sys/class/net/eth0/device/": None,
        "/sys/class/net/lo/": None,
        "/sys/class/net/eth0/statistics/rx_bytes": "0",
        "/sys/class/net/eth0/statistics/tx_bytes": "0",
        "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "0",
        "/proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=100\nfull avg10=0.00 total=9\n",
    }
    tree(files)
    host = watch_host.Host()
    tree(
        {
            "/proc/diskstats": DISKS.format(20_000, 40_000, 1000),
            "/sys/class/net/eth0/statistics/rx_bytes": "20000000",
            "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "5000000",
            "/proc/pressure/io": "some avg10=0.00 total=1000100\n",
        }
    )
    told = host.told(2.0)
    assert told["disks"] == {"sda": {"busy": 0.5, "read": 5.12, "written": 10.24}}
    assert told["links"] == {"eth0": {"received": 10.0, "sent": 0.0}, "mlx5_0/1": {"received": 10.0}}
    assert told["pressure"] == {"io": 0.5}


ID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("cgroup", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", {"slurm": "4711"}),
        ("9:memory:/slurm/uid_1000/job_42/step_batch", {"slurm": "42"}),
        ("0::/system.slice/gpu1_slurmstepd.scope/job_7/step_0", {"slurm": "7"}),
        ("0::/user.slice/user-1000.slice/session-1.scope/slurmstepd.scope/job_1/x", {}),
        (f"0::/system.slice/docker-{ID}.scope", {"container": ID}),
        (f"5:cpu:/docker/{ID}", {"container": ID}),
        (f"0::/machine.slice/libpod-{ID}.scope/container", {"container": ID}),
        (
            f"0::/kubepods.slice/kubepods-pod0a1b2c3d_0a1b_0a1b_0a1b_0a1b2c3d4e5f.slice/cri-containerd-{ID}.scope",
            {"container": ID, "pod": "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"},
        ),
        (
            f"4:cpu:/kubepods/burstable/pod0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f/{ID}",
            {"container": ID, "pod": "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"},
        ),
        ("0::/user.slice/user-1000.slice/session-3.scope", {}),
    ],
)
def test_the_cgroup_names_the_job(cgroup, job):
    assert watch_processes.job(cgroup) == job


def test_the_cgroup_of_slurm_26_05_has_the_job_of_its_slurmstepd(tree):
    path = "0::/system.slice/slurmstepd.scope/{}/step_0/user/task_0"
    scope = "/sys/fs/cgroup/system.slice/slurmstepd.scope"
    tree(
        {
            f"{scope}/s5K1KKYAYG5D00/step_0/slurm/cgroup.procs": "113630\n",
            f"{scope}/s5K1KKYAYG5D00/step_extern/slurm/cgroup.procs": "113565\n",
            f"{scope}/sEKNKTV3WPV500/step_0/slurm/cgroup.procs": "99\n",
            "/proc/113630/cmdline": "slurmstepd: [3385.0]",
            "/proc/113565/cmdline": "slurmstepd: [3385.extern]",
        }
    )
    assert watch_processes.job(path.format("s5K1KKYAYG5D00")) == {"slurm": "3385"}
    assert watch_processes.job(path.format("sEKNKTV3WPV500")) == {}, "its slurmstepd is gone"


def test_a_cpu_limit_above_the_processes_own_cgroup_counts(tree):
    tree(
        {
            "/sys/fs/cgroup/a/cpu.stat": "nr_periods 100\nnr_throttled 60\n",
            "/sys/fs/cgroup/a/b/cpu.stat": "usage_usec 1\n",
        }
    )
    assert watch_processes.throttled("0::/a/b") == (100, 60)
    assert watch_processes.throttled("0::/c") is None


TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 20 4 30 10 -1
   1: 0A00630A:A1B2 02630A0A:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 78 1 0 20 4 30 10 -1
"""
READ, RECEIVE, SLEEP, IOCTL = (
    next(number for number, kind in watch_waits.CALLS[os.uname().machine].items() if kind == name)
    for name in ("read", "receive", "sleep", "ioctl")
)
MOUNTS = "36 25 0:40 / /data rw - {} server:/data rw\n"


@pytest.mark.parametrize(
    ("state", "call", "target", "function", "doing"),
    [
        ("R", None, "", "", "run"),
        ("S", SLEEP, "", "hrtimer_nanosleep", "sleep"),
        ("S", -1, "", "futex_do_wait", "wait"),
        ("D", READ, "/data/file", "folio_wait_bit_common", "storage xfs"),
        ("D", -1, "", "folio_wait_bit_common", "storage "),
        ("D", -1, "", "rpc_wait_bit_killable", "storage network"),
        ("S", READ, "/data/pipe", "pipe_read", "wait"),
        ("S", READ, "pipe:[9]", "pipe_read", "wait"),
        ("S", RECEIVE, "socket:[77]", "wait_woken", "local"),
        ("S", RECEIVE, "socket:[78]", "wait_woken", "network 10.10.99.2"),
        ("S", READ, "socket:[99]", "wait_woken", "local"),
        ("D", IOCTL, "", "rwsem_down_read_slowpath", "driver"),
        ("D", -1, "", "0", "wait"),
    ],
)
def test_the_system_call_names_what_a_thread_waits_for(tree, state, call, target, function, doing):
    files = {
        "/proc/7/syscall": "running" if call is None else f"{call} 0x3 0x0 0x0",
        "/proc/7/wchan": function,
        "/proc/7/fdinfo/3": "pos:\t0\nflags:\t0100000\nmnt_id:\t36\n",
        "/proc/7/mountinfo": MOUNTS.format("xfs"),
        "/proc/7/net/tcp": TCP,
        **({"/proc/7/fd/3": f"-> {target}"} if target else {}),
    }
    tree(files)
    assert watch_waits.doing(7, state) == doing


def test_hidden_system_calls_still_tell_run_from_wait(tree):
    tree({"/proc/7/": None})
    assert [watch_waits.doing(7, state) for state in "RSD"] == ["run", "wait", "wait"]


def test_a_host_with_gpus_and_without_driver_is_unread(collect, fitted, tree):
    fitted(Counting(), fake_pynvml.Replay(errors={"nvmlInit": 12}))
    tree({"/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de", "/sys/bus/pci/devices/0000:01:00.0/class": "0x030200"})
    assert "no NVIDIA driver" in collect("watch", NAMES)["watch.gpus"]["unread"]
    assert read.ROOT


def test_a_window_ends_in_time(monkeypatch):
    assert watch.SPARED * 0.001 < watch.LOOK_SECONDS, "looks of a millisecond keep their distance"
