"""No file of nodetune imports one that imports it again: at its head, in a function, for types only, or by a name in a text."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import nodetune
from tests.support.imports import imported, spelled

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


def with_texts(package):
    """Return that graph, and what files may import by the names in their texts.

    A text with a variable, and one that names a folder, may mean each file there, but for underscored ones and main.py.
    """
    files = {name_of(path, package): path for path in package.rglob("*.py")}
    found = graph(package)
    for name, path in files.items():
        for text, is_open in spelled(path, package):
            rest = {each: each.removeprefix(text if is_open else f"{text}.") for each in files}
            found[name] |= {
                each for each in files if rest[each] != each and not re.search(r"(^|\.)(_|main$)", rest[each])
            }
            found[name] |= {text} & set(files)
        found[name].discard(name)
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
    found = circle(with_texts(PACKAGE))
    assert not found, f"{' <- '.join(found)}: move what they share to a file of its own"


def test_names_in_texts_are_followed():
    imports = with_texts(PACKAGE)
    assert "nodetune.cli.commands.audit" in imports["nodetune.cli.main"], "it names a folder"
    assert "nodetune.guard.node.prolog" in imports["nodetune.guard.node.main"], "it has a variable"
    assert "nodetune.onhost.nvml_limits" in imports["nodetune.guard.node.check_loop"], "it is whole, in a table"
    assert "nodetune.probe.cpu" in imports["nodetune.probe.main"], "it begins with a dot"


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
        ("from street.house import b", "def f():\n    from street.house.a import x"),
        ("from . import b", "if TYPE_CHECKING:\n    import street.house.a"),
        ("import street.house.b", "from .a import x"),
        ("from street.house.c import x", "from . import a"),
        ("import street.house.b", "import_module('street.house.a')"),
        ("from street.house import b", "importlib.import_module('.a', __package__).f()"),
        ("from street.house import b", "__import__('street.house.a')"),
        ("from street.house import b", "LAZY = {'a': 'street.house.a:command'}"),
        ("from street.house import b", "LAZY = ['street.house.a']"),
        ("from street.house import b", "def f(name):\n    import_module('street.house.' + name)"),
        ("from street.house import b", "def f(name):\n    import_module('.' + name, __package__)"),
        ("from street.house import b", "def f(name):\n    import_module(f'{__package__}.{name}')"),
        ("from street.house import b", "def f(name):\n    import_module('street.house.{}'.format(name))"),
    ],
)
def test_a_circle_is_found_however_it_is_imported(tmp_path, first, second):
    house = tmp_path / "street" / "house"
    house.mkdir(parents=True)
    for name, text in {"__init__": "", "a": first, "b": second, "c": "from street.house import b"}.items():
        (house / f"{name}.py").write_text(text)
    assert {"street.house.a", "street.house.b"} <= set(circle(with_texts(house.parent)))


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
