"""No file of nodetune imports one that imports it again: neither at its head, nor in a function, nor for types only."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import nodetune
from tests.support.imports import imported

PACKAGE = Path(nodetune.__file__).parent


def name_of(path, package):
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph(package):
    """Return each file's module and the modules that it imports: `from a import b` is the file b where there is one."""
    files = {name_of(path, package): path for path in package.rglob("*.py")}
    found = {}
    for name, path in files.items():
        wanted = {each if isinstance(each, str) else each[each[1] in files] for each in imported(path, package)}
        found[name] = wanted & set(files) - {name}
    return found


def circle(imports):
    """Return the modules of one circle, empty without any."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as problem:
        return problem.args[1]
    return []


def test_no_two_files_import_each_other():
    imports = graph(PACKAGE)
    assert len(imports) > 600
    assert "nodetune.cli.progress" in imports["nodetune.cli.terminal"], "it is imported in a function"
    assert "nodetune.remediation.ansible.events" in imports["nodetune.cli.progress"], "it is imported for types only"
    assert "nodetune.measurements.rdma" in imports["nodetune.measurements.rdma_latency"], "it is imported by a dot"
    found = circle(imports)
    assert not found, f"{' <- '.join(found)}: move what they share to a file of its own"


def owner(module):
    """Return the package that an underscored module belongs to; "" for a public one."""
    return re.match(r"(?:(.+?)\._[a-z])?", module)[1] or ""


def test_an_underscored_module_is_used_in_its_own_folder_only():
    wanted = {(name, each) for name, modules in graph(PACKAGE).items() for each in modules if owner(each)}
    assert ("nodetune.checks.nccl.nccl_name_unknown", "nodetune.checks.nccl._names") in wanted
    strangers = {f"{name} imports {each}" for name, each in wanted if not name.startswith(f"{owner(each)}.")}
    assert not strangers, "give it a public name, or move it: helpers of several areas of checks are in checks/shared/"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("from house import b", "def f():\n    from house.a import x"),
        ("from . import b", "if TYPE_CHECKING:\n    import house.a"),
        ("import house.b", "from .a import x"),
        ("from house.c import x", "from . import a"),
    ],
)
def test_a_circle_is_found_however_it_is_imported(tmp_path, first, second):
    house = tmp_path / "house"
    house.mkdir()
    for name, text in {"__init__": "", "a": first, "b": second, "c": "from house import b"}.items():
        (house / f"{name}.py").write_text(text)
    assert {"house.a", "house.b"} <= set(circle(graph(house)))


def folders(imports):
    """Return which folders' files import files of which others, a folder below another apart from it."""
    known = {name for name in imports if (PACKAGE.parent / name.replace(".", "/")).is_dir()}
    found = {}
    for name, wanted in imports.items():
        mine = name if name in known else name.rpartition(".")[0]
        theirs = {each if each in known else each.rpartition(".")[0] for each in wanted}
        found.setdefault(mine, set()).update(theirs - {mine, "nodetune"})  # it has the version, which all may read
    return found


def test_no_two_folders_import_each_other():
    below = folders(graph(PACKAGE))
    assert "nodetune.remote.login" in below["nodetune.remote.paramiko"]
    found = circle(below)
    assert not found, f"{' <- '.join(found)}: move what they share to a folder of its own"
