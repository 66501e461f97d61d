"""Every command in the documentation is run as it stands there, or DEFERRED says why not and which test does."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.pages import DOCS, ROOT, WRITTEN

sys.path.insert(0, str(DOCS))
import samples

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
SLURM, MACHINES = "tests/integration/slurm", "tests/machines"

pytestmark = pytest.mark.xdist_group("docs")  # they share their hosts

DEFERRED = {
    r"nodetune apply|nodetune rollback": (f"{MACHINES}/test_apply.py", "changes hosts: virtual machines"),
    r"nodetune (lock|provision)": (f"{MACHINES}/test_provision.py", "installs packages: virtual machines"),
    r"nodetune guard (install|uninstall)": (f"{SLURM}/test_guard_install_nodes.py", "changes hosts and wants Slurm"),
    r"nodetune guard (status|resume)|srun|scontrol": (f"{SLURM}/test_guard_slurm_commands.py", "wants Slurm"),
    r".*--transport slurm": (f"{SLURM}/test_audit_via_slurm.py", "wants Slurm"),
    r"nodetune verify (?!--compare)|nodetune verify$": (
        "tests/integration/test_measuring_ssh.py",
        "measures for minutes",
    ),
    r"nodetune tune (nccl|gpu|check)": ("tests/unit/cli/test_tune_nccl.py", "wants GPUs: simulated ones"),
    r".* -[il] '?gpu[\[0-9]": ("tests/integration/test_logins.py", "names hosts that are not here"),
    r"nodetune history \S+ gpu\.": ("tests/unit/cli/test_history.py", "wants a GPU that two audits have seen"),
    r"nodetune status": ("tests/unit/cli/test_status_command.py", "reads what commands kept before"),
    r"nodetune slow --inspector": ("tests/unit/jobs/test_late_ranks.py", "wants files of NCCL's Inspector"),
    r"nodetune slow --ras": ("tests/unit/jobs/test_ras.py", "wants a job that runs NCCL"),
    r"make|\. \.venv": (".ci/wheel", "sets up a checkout: CI does this first"),
    r"kill|echo|rm -rf /tmp/fleet": ("tests/integration/test_tutorial.py", "ends the tutorial's own sshds"),
    r".*--transport kubernetes|kubectl (create|label)|buildah": (
        "tests/integration/test_audit_by_pods.py",
        "wants a cluster",
    ),
    r"nodetune guard manifests|helm|kubectl": ("tests/integration/test_kubernetes_guard.py", "wants a cluster"),
    r"nodetune readmit|tar -xzf": (f"{SLURM}/test_readmit_slurm.py", "wants Slurm, and measures"),
    r"nodetune guard serve|ft_launcher": ("tests/unit/guard/test_serve.py", "waits for those that ask"),
    r"nodetune report": ("tests/unit/report/test_vendor_facts.py", "reads facts that an earlier command saved"),
    r"nodetune mcp": ("tests/integration/test_mcp.py", "waits for an agent"),
    r"pipx|sh nodetune-|tar xf nodetune-|ssh-keygen|sha256sum|find \. .*sha256sum|\./nodetune\.pyz": (
        "tests/integration/test_release.py",
        "wants a release, which takes minutes",
    ),
    r"python packaging/": ("tests/integration/test_node_packages.py", "wants a checkout"),
    r".*--notify ": ("tests/integration/test_notify_alertmanager.py", "wants a receiver"),
    r"sudo|python -m tests\.machines|rm -r ~": (f"{MACHINES}/test_short_story.py", "starts virtual machines"),
    r"pytest|pip install": ("tests/unit/pytest_plugin", "installs packages; a test of pytest runs the plugin"),
    r"eval|nodetune completion": ("tests/unit/cli/test_completion.py", "changes the shell"),
    r"install -d|DESTDIR=|nodetune-pull/install|touch /etc|/opt/nodetune": (
        f"{MACHINES}/test_pull_machines.py",
        "writes to the system",
    ),
}
"""Pattern of a command → the test that runs such commands, and why this one does not."""

RIGHT = {"before.json after.json": 5, "typos.yml": 2, "watch -i": 3}
"""A part of a command → its exit code, where that is neither 0 nor 1: a figure became worse, a file has mistakes, no host has
GPUs."""

ELSEWHERE = {
    "/tmp/fleet.yml": "inventories/prod.yml",
    "/shared/nodetune/facts": "facts",
    "/shared/facts": "facts",
    "/var/lib/prometheus/node-exporter/": "",
}
"""Paths of the documentation → where that is in the folder of the test."""


PATIENT = 'case " $* " in *" profile "*) ;; *" -i "*) set -- "$@" --timeout 600 ;; esac\nexec {python} -m nodetune "$@"'
"""The program, with time for hosts that share a busy machine."""


def blocks(page):
    """The commands of each block of a page."""
    for _, language, text in FENCE.findall(page.read_text("utf-8")):
        if language in ("", "sh", "console"):
            found = list(commands(textwrap.dedent(text), language))
            if found:
                yield found


def commands(text, language):
    """The commands of a block: all lines of a shell, of which a loop or case is one; `$ …` where output follows."""
    if language == "console":
        return (line[2:].split("  #")[0].strip() for line in text.splitlines() if line.startswith("$ "))
    if language == "sh" and "esac" in text:
        return iter([text])
    lines = (re.split(r"\s{2,}|\s# ", line)[0].strip() for line in re.sub(r"\|\n\s*", "| ", text).splitlines())
    return (
        line
        for line in lines
        if re.match(r"(\w+=\S+ )*(nodetune|salloc)\b", line) or (language == "sh" and line[:1] != "#" and line)
    )


SET = re.compile(r"^((?!DESTDIR)\w+=\S+ )*(salloc (-\S+ )*)?")
"""What stands before a program: variables, and the allocation in which it runs."""


def deferred(command):
    return next((pattern for pattern in DEFERRED if re.match(pattern, SET.sub("", command))), None)


@pytest.fixture(scope="module")
def place(new_farm, tmp_path_factory):
    """A folder in which the files of the documentation exist, and inventories/prod with hosts that answer."""
    folder = tmp_path_factory.mktemp("docs")
    farm = new_farm()
    hosts = {name: farm.address() for name in ("gpu001", "gpu017")}
    farm.start(dict.fromkeys(hosts.values(), ()))
    for address in hosts.values():
        farm.know(address)
    names = "".join(f"    {name}: {{ansible_host: {address}}}\n" for name, address in hosts.items())
    (folder / "inventories").mkdir()
    (folder / "inventories" / "prod.yml").write_text(
        f"gpu:\n  hosts:\n{names}  vars:\n    ansible_ssh_common_args: -F {farm.config}\n"
        f"h200: {{children: {{gpu: }}}}\ndrained: {{hosts: {{gpu017: }}}}\n"
    )
    (folder / "bin").mkdir()
    farm.script(folder / "bin" / "nodetune", PATIENT.format(python=sys.executable))
    samples.fill(folder)
    return folder


def run(folder, command):
    for path, here in ELSEWHERE.items():
        command = command.replace(path, f"{folder}/{here}")
    environment = {
        **os.environ,
        "PATH": f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


@pytest.mark.parametrize("page", [page for page in WRITTEN if list(blocks(page))], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_they_stand_there(page, place, tmp_path):
    folder = tmp_path / "docs"
    shutil.copytree(place, folder)
    for command in [each for block in blocks(page) for each in block if not deferred(each)]:
        done = run(folder, command)
        right = [code for name, code in RIGHT.items() if name in command] or [0, 1]
        assert done.returncode in right, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert not re.search("Traceback|not reached", done.stdout + done.stderr), command


def test_what_is_deferred_exists_in_docs_and_tests():
    every = [command for page in WRITTEN for block in blocks(page) for command in block]
    assert len(every) > 100
    used = {deferred(command) for command in every}
    assert used >= set(DEFERRED)
    assert [test for test, _ in DEFERRED.values() if not (ROOT / test).exists()] == []
