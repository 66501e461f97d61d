"""Each way to install a controller, in a clean root of a distribution without network: one command, an audit, and no trace."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from roots import Root, changed, run

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


@pytest.fixture(scope="module")
def root(root_archive, dist, tmp_path_factory):
    """A root with a release's files in /packages, where pipx and uv have run once."""
    made = Root(root_archive, tmp_path_factory.mktemp("clean") / "root")
    made.take(dist, "*.whl", "*.pyz")
    run("tar", "xf", *dist.glob("*-bundle.tar.gz"), "-C", made.path("/packages"), "--strip-components=1")
    shutil.copy(Path(sys.executable).parent / "uv", made.path("/usr/local/bin"))
    made.run("mkdir -p /root/.local/bin /root/.local/share /root/.local/state /root/.cache /root/.config")
    made.run(f"{OFFLINE} pipx list; uv tool list")
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
