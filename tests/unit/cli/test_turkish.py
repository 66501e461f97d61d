"""A Turkish locale, where the lower case of I is not i, and numbers have a decimal comma: on hosts and on the controller."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from nodetune.onhost import protocol
from nodetune.remote import payload

ASKED = {
    "host": ["arch", "kernel", "os"],
    "cpu": ["model", "vendor"],
    "cmdline": ["running"],
    "sysctl": ["vm.swappiness"],
}


@pytest.fixture(scope="module")
def turkish(tmp_path_factory):
    """An environment in Turkish, in which a program of the C library really folds so."""
    folder = tmp_path_factory.mktemp("locales")
    tool = shutil.which("localedef")
    if not tool or subprocess.run([tool, "-i", "tr_TR", "-f", "UTF-8", folder / "tr_TR.UTF-8"]).returncode:
        pytest.skip("no source of the Turkish locale on this machine: apt install locales")
    found = {**os.environ, "LOCPATH": str(folder), "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}
    code = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"
    assert subprocess.check_output([sys.executable, "-c", code], env=found, text=True) == ",\n"
    return found


def said(environment, *words):
    command = [sys.executable, "-m", "nodetune", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--facts", "h200-x4"),
        ("checks", "INFINIBAND"),
        ("explain", "gpu-irqs-remote"),
        ("plan", "--facts", "h200-x4"),
    ],
    ids=lambda words: " ".join(words[:1] + words[-1:]),
)
def test_a_turkish_controller_says_the_same(turkish, words):
    usual = {**os.environ, "LC_ALL": "C.UTF-8"}
    found = said(turkish, *words)
    assert found == said(usual, *words)
    assert found[0] != 2


def test_a_turkish_host_has_the_same_facts(turkish):
    def facts(environment):
        script, nonce = payload.script(ASKED, 20.0)
        command = [sys.executable, "-I", "-S", "-"]
        printed = subprocess.run(command, input=script, capture_output=True, env=environment, timeout=120).stdout
        (answer,) = protocol.Decoder(nonce).feed(printed)
        found = json.loads(answer)["facts"]
        return {name: found[name] for name in (f"{family}.{each}" for family in ASKED for each in ASKED[family])}

    assert facts(turkish) == facts({**os.environ, "LC_ALL": "C"})
