"""Each way to install a controller, in a clean root of a distribution without network: one command, an audit, and no trace."""

import json
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from roots import Root, changed, run

from tests.support.pages import ROOT

OFFLINE = "PIP_NO_INDEX=1 PIP_FIND_LINKS=/packages/wheels"
OWN = "/root/.cache/nodetune /root/.local/state/nodetune"
WAYS = {
    "pipx": (f"{OFFLINE} pipx install /packages/nodetune-*.whl", "pipx uninstall nodetune"),
    "uv": (
        "uv tool install --offline --no-index --find-links /packages/wheels /packages/nodetune-*.whl",
        "uv tool uninstall nodetune",
    ),
    "bundle": ("sh /packages/install.sh /opt/nodetune", "rm -r /opt/nodetune"),
    "zipapp": (
        "cp /packages/nodetune.pyz /usr/local/bin/nodetune",
        "rm -r /usr/local/bin/nodetune /root/.cache/nodetune-zipapp",
    ),
}
PLACES = {"bundle": "/opt/nodetune/bin/nodetune"}

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("release"),
    pytest.mark.skipif(os.geteuid() != 0, reason="roots of other distributions need root"),
]


def other_package(folder):
    """A wheel of another package, with a program and a manual page."""
    about = "other-1.0.dist-info"
    files = {
        "other.py": "def main(): pass\n",
        "other-1.0.data/data/share/man/man1/other.1": ".TH OTHER 1\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: other\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\nother=other:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / "other-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)


@pytest.fixture(scope="module")
def root(root_archive, dist, tmp_path_factory):
    """A root with a release's files in /packages, where pipx and uv have installed and removed another package."""
    made = Root(root_archive, tmp_path_factory.mktemp("clean") / "root")
    made.take(dist, "*.whl", "*.pyz")
    run("tar", "xf", *dist.glob("*-bundle.tar.gz"), "-C", made.path("/packages"), "--strip-components=1")
    shutil.copy(Path(sys.executable).parent / "uv", made.path("/usr/local/bin"))
    made.run("mkdir -p /root/.local/bin /root/.local/share /root/.local/state /root/.cache /root/.config")
    other_package(made.path("/packages"))
    for way in ("pipx", "uv"):
        for each in WAYS[way]:
            made.run(each.replace("nodetune", "other"))
    yield made
    shutil.rmtree(made.folder)


@pytest.mark.parametrize("way", WAYS)
def test_a_controller_comes_audits_and_leaves_no_trace(root, way):
    install, remove = WAYS[way]
    before = root.content()
    root.run(install)
    nodetune = PLACES.get(way, "nodetune")
    recorded, local = (
        json.loads(root.run(f"{nodetune} audit {words} --format json --fail-on never", codes=(0, 3)))["hosts"][0]
        for words in ("--facts h100-x2", "")
    )
    assert (recorded["name"], recorded["state"], local["state"]) == ("h100-x2", "ok", "ok")
    assert min(len(recorded["findings"]), len(local["findings"])) > 100
    root.run(f"{remove}; rm -rf {OWN}")
    assert changed(before, root.content()) == []


UNIT = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"


def test_an_image_takes_the_files_of_an_export_as_their_guide_says(root, tmp_path):
    """The last test of a root: it keeps them. The units that the host of the plan had are planted."""
    out, machine = tmp_path / "out", ROOT / "tests/data/synthetic/hgx-h200-untuned.json"
    planned = ("plan", "--facts", machine, "--site", "none", "--export", out)
    run(sys.executable, "-m", "nodetune", *planned, codes=(0, 1))
    run("cp", "-a", f"{out}/files/.", root.folder)
    commands = re.findall(r"^    (systemctl .*)$", (out / "README.md").read_text(), re.MULTILINE)
    assert len(commands) > 4
    for name in ("nvidia-persistenced", "irqbalance"):
        root.path(f"/usr/lib/systemd/system/{name}.service").write_text(UNIT)
    for each in commands:
        root.run(each)
    wanted = {each.name for each in root.path("/etc/systemd/system/multi-user.target.wants").iterdir()}
    assert wanted >= {"nodetune-cpu.service", "nodetune-irq.service", "nvidia-persistenced.service"}
    assert root.run("systemd-analyze verify /etc/systemd/system/nodetune-*.service 2>&1") == ""
    if "verify" in root.run("udevadm --help"):  # from systemd 254 on
        root.run("udevadm verify /etc/udev/rules.d")
    root.run("sh -n /etc/default/grub.d/zz-nodetune.cfg")
    assert '"nvidia-driver-580-server-open$"' in root.run("apt-config dump Unattended-Upgrade::Package-Blacklist")
