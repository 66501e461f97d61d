"""What tests of several rooms need."""

import gc
import os
import shlex
import signal
import subprocess
import sys

import pytest

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts background jobs so, and all that a test starts would inherit it: Ctrl-C must end those.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Answers about the tests' inventories do not push those of the user's out of the cache; the user's settings do not count."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory):
    """What tests do is not the last audit of the user's."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture
def full_disk(tmp_path):
    """Runs nodetune in a folder on a disk of a given size: (how it ended, the files that are left there)."""
    if os.geteuid():
        pytest.skip("mounting a disk takes root")

    def run(size, *words):
        command = shlex.join([sys.executable, "-m", "nodetune", *words])
        script = f"mount -t tmpfs -o size={size} none {tmp_path} && cd {tmp_path} && {command}; code=$?; find . -type f; exit $code"
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120)
        return done, done.stdout.splitlines()

    return run


gc.disable()  # until the tests are collected: of 20,000 objects that all stay, none is garbage


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for path in {item.path for item in items if item.get_closest_marker("slow")}:
        if "mark.slow" not in path.read_text():
            raise pytest.UsageError(f"{path}: write pytest.mark.slow in this file: make integration looks for it")


def pytest_terminal_summary(terminalreporter):
    """Names what was not tried, and why: it looks like success otherwise."""
    reasons = {}
    for report in terminalreporter.stats.get("skipped", []):
        reasons.setdefault(report.longrepr[2].removeprefix("Skipped: "), []).append(report.nodeid)
    if not reasons:
        return
    terminalreporter.section("not tried")
    for reason, names in sorted(reasons.items()):
        terminalreporter.line(f"{reason}:")
        for name in names:
            terminalreporter.line(f"  {name}")
    count = sum(map(len, reasons.values()))
    terminalreporter.line(f"Not tried: {count} tests, because: {'; '.join(sorted(reasons))}.")
