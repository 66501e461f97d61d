"""The part of pynvml that travels with what runs on a host: all that its code names, and what that needs."""

import ast
import builtins
import ctypes
import symtable
import types

import pynvml
import pytest

from nodetune.foundation import paths
from nodetune.guard.deploy import archive
from nodetune.remote import payload

PROGRAMS = {
    "probe": ("probe", "onhost"),
    "measurements": ("measurements", "onhost"),
    "guard": archive.READING,
}


def sources(folders):
    return [path.read_text() for folder in folders for path in sorted((paths.PACKAGE / folder).rglob("*.py"))]


def named(text):
    """Every attribute, name and text of a source."""
    for node in ast.walk(ast.parse(text)):
        yield from (getattr(node, part, None) for part in ("attr", "id", "value"))


def running(text):
    made = types.ModuleType("pynvml")
    exec(compile(text, "pynvml", "exec"), made.__dict__)
    return made


def undefined(text):
    """Global names that code uses and nothing defines."""
    top = symtable.symtable(text, "pynvml", "exec")
    known = {each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()}
    scopes, used = [top], set()
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        used |= {each.get_name() for each in scope.get_symbols() if each.is_global() or scope is top}
    return used - known - set(dir(builtins)) - set(dir(ctypes)) - {"__name__"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_part_has_every_name_of_pynvml_that_code_uses(program):
    texts = sources(PROGRAMS[program])
    used = {name for text in texts for name in named(text) if isinstance(name, str) and "nvml" in name.lower()}
    used &= vars(pynvml).keys()
    assert len(used) > 15
    assert used <= vars(running(payload.pynvml_for(texts))).keys()


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_part_lacks_no_definition_that_it_needs(program):
    part = payload.pynvml_for(sources(PROGRAMS[program]))
    assert undefined(part) <= undefined(payload.pynvml_source())
    assert len(part) * 4 < len(payload.pynvml_source())


def test_errors_have_the_classes_and_words_of_the_whole():
    part = running(payload.pynvml_for([]))
    for name, code in vars(pynvml).items():
        if name.startswith("NVML_ERROR_"):
            mine, theirs = part.NVMLError(code), pynvml.NVMLError(code)
            assert type(mine).__name__ == type(theirs).__name__
            assert type(mine) is not part.NVMLError
    assert str(part.NVMLError(15)) == "GPU is lost"


def test_the_licence_travels_with_the_part():
    assert "Copyright" in payload.pynvml_for([]).partition("\nfrom ")[0]


def test_a_pynvml_written_in_another_way_travels_whole(monkeypatch):
    text = 'import ctypes\ndef nvmlInit():\n    """Text\nnot = "indented"\n    """\n'
    monkeypatch.setattr(payload, "pynvml_source", lambda: text)
    assert payload.pynvml_for(["nvmlInit()"]) == text
