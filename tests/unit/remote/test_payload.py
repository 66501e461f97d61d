"""The probe as one script: the same facts as by import, on every Python from 3.6, and a clear word from older ones."""

import glob
import json
import os
import shutil
import subprocess
import sys

import pytest

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.onhost import protocol
from nodetune.remote import payload, pool
from nodetune.remote.login import session

OTHERS = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")) + glob.glob("/usr/bin/python3"))


def answer(output, nonce):
    (found,) = session.feed(protocol.Decoder(nonce), output)
    return found


def probe(python, names, seconds=20.0):
    script, nonce = payload.script(payload.families(names), seconds)
    done = subprocess.run([python, "-I", "-S", "-"], input=script, capture_output=True, check=False)
    return json.loads(answer(done.stdout, nonce)), done.stderr.decode()


@pytest.fixture(scope="module")
def every_fact():
    return evaluate.required_facts(checks.load_all())


def test_piped_and_imported_see_the_same(every_fact):
    """What differs each time: other tests change this machine meanwhile, and some facts never hold still."""
    found = differing(every_fact)
    for _ in range(2):
        found = found and found & differing(every_fact)
    assert found == set()


def imported_facts(names):
    """In a process of its own: other tests have loaded a substitute of the driver's library into this one."""
    program = (
        "import json, sys; from nodetune.remote import payload as bundle; from nodetune.remote import local\n"
        "print(json.dumps(local.facts(bundle.families(set(json.load(sys.stdin))), 20.0)['facts']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(sorted(names)), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def differing(names):
    imported = imported_facts(names)
    piped, said = probe(sys.executable, names)
    after = imported_facts(names)
    assert said == ""
    assert set(piped["facts"]) == set(imported)
    steady = {name for name, fact in imported.items() if after.get(name) == fact}
    assert len(steady) > len(after) / 2
    return {name for name in steady if piped["facts"][name] != imported[name]}


def test_no_collector_fails_on_this_machine(every_fact):
    piped, _ = probe(sys.executable, every_fact)
    assert piped["failed"] == {}


@pytest.mark.parametrize("python", OTHERS)
def test_the_probe_runs_on_other_pythons(python, every_fact):
    version = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 6))"], capture_output=True, text=True, check=False
    )
    if version.stdout.strip() != "True":
        pytest.skip("not an interpreter of 3.6 or newer")
    piped, said = probe(python, every_fact)
    assert said == ""
    assert piped["failed"] == {}
    assert len(piped["facts"]) > 1


@pytest.fixture
def python2():
    pyenv = glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/bin/python"))
    python = pyenv[0] if pyenv else shutil.which("python2")
    if python is None:
        pytest.skip("no Python 2 on this machine")
    return python


def test_a_python_2_that_is_started_as_python_3_is_named(python2):
    target = Target("old", connection="local", python=python2)
    ((_, outcome, _),) = pool.collect([target], lambda _: payload.script({"host": []}, 5.0), SessionOptions())
    assert outcome.state == "no python"
    assert outcome.message.startswith(
        "the host's Python is older than 3.4: 3.6 or newer is needed: install it, or set "
    )


def test_a_python_that_is_too_old_says_so(python2):
    script, nonce = payload.script({"host": []}, 5.0)
    done = subprocess.run([python2, "-"], input=script, capture_output=True, check=True)
    with pytest.raises(UnreachableError, match="Python 2.7: 3.6 or newer is needed"):
        answer(done.stdout, nonce)


def test_only_the_families_that_are_asked_for_travel():
    small, _ = payload.script({"sysctl": ["vm.swappiness"]}, 5.0)
    large, _ = payload.script({"sysctl": ["vm.swappiness"], "gpu": []}, 5.0)
    assert len(small) * 2 < len(large) < 60_000, "pynvml rides along only with the GPU family, and only in part"


def test_the_answer_is_found_between_whatever_a_login_prints():
    script, nonce = payload.script({"host": []}, 5.0)
    done = subprocess.run([sys.executable, "-I", "-S", "-"], input=script, capture_output=True, check=True)
    noisy = b"Welcome!\n<<nodetune 0000 5 00000000>>\n\x1b[31m" + done.stdout + b"logout\n"
    assert json.loads(answer(noisy, nonce))["facts"]["host.arch"]
