"""The measuring payload as it runs on a host: deadlines, deaths, floods, the end of the connection, one run at a time."""

import glob
import importlib
import os
import secrets
import shutil
import signal
import subprocess
import sys

import pytest

from nodetune.onhost import protocol
from nodetune.remote import payload
from nodetune.verify import remote
from tests.support.verifying import Run, alive, gone, plan, planted, wait_for_free_place

OTHERS = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")) + glob.glob("/usr/bin/python3"))
FINE = """
SECONDS = 7.0
def measure(options, report):
    report.step("adding")
    report.note("beside")
    report.result("cpu0", [1, 2.5, 2], "GB/s", metric="sum", size=options.get("size", 3), where="dès→là")
"""
SLEEPS = """
import os, subprocess, time
def measure(options, report):
    os.environ["NODETUNE_TEST"] = options["marker"]
    own = subprocess.Popen(["sleep", "300"])
    subprocess.Popen(["setsid", "sleep", "300"])
    subprocess.Popen(["sh", "-c", "setsid sleep 300 &"]).wait()
    report.step("sleeping for good")
    time.sleep(300)
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    """host(plan, python=…, name=source…) runs a plan with planted measurements. All is ended with the test."""
    runs = []

    def run(plan, python=sys.executable, flags=("-I", "-S"), **sources):
        if sources:
            folder = planted(tmp_path / str(len(runs)), **sources)
            monkeypatch.setattr(payload, "MEASUREMENTS", folder)
        runs.append(Run(plan, python, flags))
        return runs[-1]

    yield run
    for each in runs:
        each.close()


@pytest.mark.parametrize("name", remote.names())
def test_each_measurement_gets_the_time_that_it_states(name):
    module = importlib.import_module(f"nodetune.measurements.{name}")
    assert remote.seconds_of({"name": name}) == module.SECONDS


@pytest.fixture
def marker():
    return f"nodetune-test-{secrets.token_hex(8)}"


def one(host, source, seconds=20.0, **options):
    """The records of one planted measurement."""
    asked = {"measurements": [{"name": "planted", "options": options, "seconds": seconds}]}
    return host(asked, planted=source).all().records()


def failure(*arguments, **more):
    """The reason of its only record."""
    (record,) = one(*arguments, **more)
    assert set(record) == {"measurement", "failed"}
    return record["failed"]


def test_what_a_measurement_says_comes_in_order(host):
    run = host(plan("planted"), planted=FINE).all()
    assert [next(iter(event)) for event in run.events] == ["begin", "step", "step", "note", "record", "done", "end"]
    about = {"size": 3, "where": "dès→là"}
    told = {"measurement": "planted", "metric": "sum", "subject": "cpu0", "unit": "GB/s", "better": "higher"}
    assert run.records() == [{**told, "samples": [1.0, 2.5, 2.0], "about": about}]


def test_options_reach_the_measurement(host):
    assert one(host, FINE, size=9)[0]["about"]["size"] == 9


@pytest.mark.parametrize("python", OTHERS)
def test_the_payload_runs_on_every_python_from_36(host, python):
    code = "import sys; print(sys.version_info >= (3, 6))"
    version = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if version.stdout.strip() != "True":
        pytest.skip("not an interpreter of 3.6 or newer")
    jitter = {"name": "jitter", "options": {"seconds": 0.2, "repeats": 1}, "seconds": 60}
    asked = {"measurements": [{"name": "planted"}, jitter, {"name": "clock", "seconds": 60}]}
    run = host(asked, python, planted=FINE).all()
    assert [record.get("failed") for record in run.records()] == [None] * len(run.records())
    assert {record["measurement"] for record in run.records()} == {"planted", "jitter", "clock"}


def test_a_login_that_may_open_few_files_can_measure(host, monkeypatch):
    script = "import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)); "
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words, **more: popen([*words[:-1], script + words[-1]], **more))
    assert one(host, FINE)[0]["samples"] == [1.0, 2.5, 2.0]


def test_a_python_that_is_too_old_says_so(host):
    old = glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/bin/python"))
    if not old:
        pytest.skip("no Python 2 on this machine")
    run = host(plan("planted"), old[0], (), planted=FINE).all()
    assert run._decoder.old == "2.7"


def test_a_late_measurement_is_killed_and_its_step_named(host, marker):
    reason = failure(host, SLEEPS, seconds=1.5, marker=marker)
    assert reason == "not finished within 1.5 s and killed; it was at: sleeping for good"
    assert gone(lambda: alive(marker)) == [], "nothing of what it started is left, orphans included"


FROZEN = 'fsfreeze -f "$1" && echo frozen && cat > /dev/null; fsfreeze -u "$1" && umount -l "$1"'
"""Ends with whoever holds its input, however that ends: what stayed frozen would hang each pytest that tidies up after this one."""


@pytest.fixture
def frozen(tmp_path):
    """A file system that answers no write: whoever tries is stuck in the kernel, where no signal reaches it."""
    if os.getuid() != 0:
        pytest.skip("freezing a file system takes root")
    if not shutil.which("mkfs.ext4"):
        pytest.skip("no mkfs.ext4 here: apt install e2fsprogs")
    image, place = tmp_path / "image", tmp_path / "frozen"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    made = subprocess.run(["mkfs.ext4", "-q", image], check=False, capture_output=True)
    if (
        made.returncode
        or subprocess.run(["mount", "-o", "loop", image, place], check=False, capture_output=True).returncode
    ):
        pytest.skip("no ext4 on a loop device here")
    holder = subprocess.Popen(["sh", "-c", FROZEN, "sh", place], stdin=-1, stdout=-1, start_new_session=True)
    assert holder.stdout.readline() == b"frozen\n"
    yield place
    holder.communicate()
    assert holder.returncode == 0


def test_a_process_stuck_in_the_kernel_is_left_behind_and_named(host, frozen):
    stuck = f"def measure(options, report):\n    report.step('writing')\n    open({str(frozen / 'file')!r}, 'w')\n"
    asked = {"measurements": [{"name": "stuck", "seconds": 0.5}, {"name": "planted"}]}
    run = host(asked, stuck=stuck, planted=FINE).all()
    failed, fine = run.records()
    left = [event["done"]["left"] for event in run.events if "done" in event]
    assert failed["failed"] == (
        "not finished within 0.5 s and killed; it was at: writing; "
        f"process {left[0][0]} is stuck in the kernel, cannot be killed, and was left"
    )
    assert left[1] == []
    assert fine["samples"] == [1.0, 2.5, 2.0]


def test_what_follows_a_killed_measurement_is_measured(host):
    hang = "def measure(options, report):\n    while True: pass\n"
    asked = {"measurements": [{"name": "hang", "seconds": 0.5}, {"name": "planted"}]}
    records = host(asked, hang=hang, planted=FINE).all().records()
    assert [("failed" in record, record["measurement"]) for record in records] == [(True, "hang"), (False, "planted")]


def test_a_measurement_that_ignores_signals_is_killed_too(host):
    source = "import signal, time\ndef measure(options, report):\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(300)\n"
    assert "not finished within 0.5 s" in failure(host, source, seconds=0.5)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise reporting.MeasurementError('GPU3: no answer')", "GPU3: no answer"),
        ("1 / 0", "the planted measurement failed: ZeroDivisionError('division by zero') (<nodetune.measurements.planted>:4)"),
        ("bytearray(1 << 60)", "this host has too little free memory for it"),
        ("report.result('x', [float('nan')], 'GB/s')", "planted of x is [nan]"),
        ("report.result('x', [], 'GB/s')", "planted of x is []"),
        ("os.write(2, b'libfoo: bad thing\\n'); os.abort()", "its process ended (signal 6); it was at: its start; it printed: libfoo: bad thing"),
        ("report.step('here'); os._exit(7)", "its process ended (exit status 7); it was at: here"),
        ("while True: report.note('x' * 1000)", "sent more than 16 MiB and was killed"),
    ],
)  # fmt: skip
def test_what_goes_wrong_in_a_measurement_is_said_in_one_line(host, body, says):
    source = f"import os\nfrom nodetune.measurements.host import report as reporting\ndef measure(options, report):\n    {body}\n"
    assert failure(host, source) == says


def test_a_flood_of_prints_is_neither_kept_nor_waited_for(host):
    source = "import os\ndef measure(options, report):\n    for _ in range(3000): os.write(1, b'y' * 60000)\n    report.result('x', [1], 's')\n"
    assert [record["samples"] for record in one(host, source)] == [[1.0]]


def test_a_missing_tool_is_a_skip(host):
    source = "from nodetune.measurements.host import external_tool\ndef measure(options, report):\n    external_tool.need('no-such-tool', 'its-package')\n"
    (record,) = one(host, source)
    assert record["skip"] == "no-such-tool is not installed: apt install its-package, or dnf install its-package"


def test_the_environment_of_the_plan_reaches_the_measurement(host, monkeypatch):
    monkeypatch.setenv("PLANTED_REMOVED", "x")
    monkeypatch.setenv("PLANTED_KEPT", "kept")
    source = "import os\ndef measure(options, report):\n    report.result('x', [1], 's', env={k: v for k, v in os.environ.items() if k.startswith('PLANTED_')})\n"
    asked = plan("planted", env={"PLANTED_SET": "1", "PLANTED_REMOVED": None})
    (record,) = host(asked, planted=source).all().records()
    assert record["about"]["env"] == {"PLANTED_SET": "1", "PLANTED_KEPT": "kept"}


def sleeping(host, marker):
    """A run that is at its step, with processes of all kinds below it."""
    run = host({"measurements": [{"name": "planted", "options": {"marker": marker}, "seconds": 300}]}, planted=SLEEPS)
    assert run.until(lambda event: event.get("step", {}).get("text") == "sleeping for good")
    assert gone(lambda: len(alive(marker)) < 3) is False, "they are all there"
    return run


def test_the_end_of_the_connection_ends_everything(host, marker):
    run = sleeping(host, marker)
    run.hang_up()
    assert run.until(lambda event: "end" in event) is None
    assert run.process.wait(30) == 1
    assert gone(lambda: alive(marker)) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(host, marker, number):
    run = sleeping(host, marker)
    run.process.send_signal(number)
    assert run.process.wait(30) == 1
    assert gone(lambda: alive(marker)) == []


DIES = """
import os, time
from nodetune.measurements.host import external_tool
def measure(options, report):
    os.environ["NODETUNE_TEST"] = options["marker"]
    external_tool.start(["/bin/sleep", "300"])
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "300"])
    report.step("sleeping for good")
    time.sleep(300)
"""


def test_a_killed_supervisor_ends_measurements_and_tools(host, marker):
    asked = {"measurements": [{"name": "planted", "options": {"marker": marker}, "seconds": 300}]}
    run = host(asked, planted=DIES)
    assert run.until(lambda event: event.get("step", {}).get("text") == "sleeping for good")
    below = run.events[0]["begin"]["pid"]
    assert gone(lambda: len(alive(marker)) < 2) is False
    os.kill(below, signal.SIGKILL)
    assert gone(lambda: alive(marker)) == []


def test_a_reader_that_is_gone_ends_everything(host, marker):
    run = sleeping(host, marker)
    run.process.stdout.close()
    run.process.stdin.close()
    assert run.process.wait(30) == 1
    assert gone(lambda: alive(marker)) == []


def test_damaged_input_ends_everything(host, marker):
    run = sleeping(host, marker)
    run.process.stdin.write(f"<<nodetune {run.nonce} 2/2 AAAA>>\n".encode())
    run.process.stdin.flush()
    assert run.process.wait(30) == 1
    assert gone(lambda: alive(marker)) == []


# One run at a time


TURN = pytest.mark.xdist_group("verify-turn")


@pytest.fixture
def holder(host, marker):
    """A run `aaaaaa` that measures, whoever else on this machine wants to do so just now."""
    asked = {"run": "aaaaaa", "measurements": [{"name": "planted", "options": {"marker": marker}, "seconds": 300}]}
    for _ in range(20):
        wait_for_free_place()
        run = host(asked, planted=DIES)
        if run.until(lambda event: event.get("step", {}).get("text") == "sleeping for good"):
            return run
    pytest.fail("somebody else measures on this machine all the time")


@TURN
def test_another_run_is_refused_and_the_running_one_is_named(host, holder):
    second = host(plan("planted", "planted", run="bbbbbb"), planted=FINE).all()
    pid = holder.events[0]["begin"]["pid"]
    says = f"another verify is running on this host (process {pid}): wait for it, or end it"
    assert [record["failed"] for record in second.records()] == [says, says]


@TURN
def test_a_dead_holder_keeps_no_place(host, holder):
    holder.process.kill()
    second = host(plan("planted", run="bbbbbb"), planted=FINE).all()
    pid = holder.events[0]["begin"]["pid"]
    assert f"process {pid}" not in second.records()[0].get("failed", "")


@TURN
def test_hosts_of_one_run_on_one_machine_share_the_place(host, holder):
    second = host(plan("planted", run="aaaaaa"), planted=FINE).all()
    assert second.records()[0]["samples"] == [1.0, 2.5, 2.0]


# By hand


def by_hand(*words):
    return subprocess.run(
        [sys.executable, "-m", "nodetune.measurements", *words], capture_output=True, text=True, check=False
    )


def test_one_manual_measurement_prints_records_as_json_lines():
    done = by_hand("disk", "{}")
    assert done.returncode == 0
    assert done.stdout == '{"measurement": "disk", "skip": "no folder to measure in: give --disk DIR"}\n'
    assert done.stderr == "step: starting\n"


@pytest.mark.parametrize(
    "words", [[], ["../main"], ["nothing"], ["disk", "[1]"], ["disk", "{"], ["disk", "{}", "soon"]]
)
def test_a_slip_in_a_manual_measurement_is_explained(words):
    done = by_hand(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


# Started by srun: all hosts get the same script and the same input

MEETS = """
def measure(options, report):
    report.tell("who", report.self)
    report.result(report.hosts[report.self], [report.hear("who", 60)], "s")
"""


def test_hosts_with_a_shared_script_take_their_own_place(tmp_path, monkeypatch):
    monkeypatch.setattr(payload, "MEASUREMENTS", planted(tmp_path, meets=MEETS))
    pair = plan("meets", group={"hosts": ["a", "b"]})
    script, nonce = payload.measuring({**plan("meets"), "plans": [pair], "hosts": ["a", "b"], "of": [0, 0]})
    runs = []
    for number in range(2):
        monkeypatch.setenv("SLURM_PROCID", str(number))
        runs.append(Run(None, given=(script, nonce)))
    told = [run.until(lambda event: "tell" in event)["tell"] for run in runs]
    for run in runs:
        for each in told:
            run.process.stdin.write(protocol.encode_event({"told": each, "plan": 0}, nonce))
        run.process.stdin.flush()
    heard = {run.all().records()[0]["subject"]: run.records()[0]["samples"] for run in runs}
    for run in runs:
        run.close()
    assert heard == {"a": [1.0], "b": [0.0]}
