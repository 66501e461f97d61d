"""ansible-lint with its profile production: on the playbooks here, and on the collection that is made of them. uv fetches it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"


def said(folder, *words, **places):
    env = {**os.environ, "LC_ALL": "C.UTF-8", **{f"ANSIBLE_{name}": str(place) for name, place in places.items()}}
    command = [UV, "tool", "run", "-q", "ansible-lint", "-q", "--nocolor", "--format", "pep8", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return done.stdout if done.returncode in (0, 2) else done.stdout + done.stderr


def test_the_playbooks_are_clean():
    own = ROOT / "playbooks"
    places = {
        "LIBRARY": own / "library",
        "MODULE_UTILS": own / "module_utils",
        "ROLES_PATH": f"{own}/roles:{own}/engine/roles",
        "FILTER_PLUGINS": own / "roles/tuning/filter_plugins",
    }
    assert said(ROOT, "playbooks", **places) == ""


def test_the_collection_is_clean_and_says_what_its_modules_return(tmp_path):
    folder = tmp_path / "ansible_collections/nodetune/node"
    folder.mkdir(parents=True)
    subprocess.run([sys.executable, ROOT / "packaging/collection.py", tmp_path], check=True, capture_output=True)
    subprocess.run(["tar", "xf", *tmp_path.glob("*.tar.gz"), "-C", folder], check=True)
    assert said(folder, COLLECTIONS_PATH=tmp_path) == ""
    modules = sorted(folder.glob("plugins/modules/*.py"))
    assert len(modules) == 8
    assert [each.name for each in modules if 'RETURN = r"""' not in each.read_text()] == []
