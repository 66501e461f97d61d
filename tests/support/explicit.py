"""Finds leaves whose kind nobody has said: they would be settings, a row a change, without an error."""

from nodetune.facts import catalogue
from nodetune.facts.shapes import MapOf, OneOf, Record


def unsaid(name, fact):
    """The leaves of a fact, as the probe sends it, that the catalogue does not have."""
    known = catalogue.listed(name)
    if not known:
        return [name]
    ones = fact["each"].items() if "each" in fact else [("", fact)]
    shape = catalogue.wanted_of(known).shape
    return sorted({f"{name} {path}" for _, one in ones if "value" in one for path in _unsaid(shape, one["value"])})


def _unsaid(shape, value, path=""):
    if not isinstance(value, dict):
        return
    objects = [
        each for each in (shape.shapes if isinstance(shape, OneOf) else [shape]) if isinstance(each, Record | MapOf)
    ]
    for key, below in value.items():
        found = [each.of if isinstance(each, MapOf) else each.shapes.get(key) for each in objects]
        below_shape = next(filter(None, found), None)
        if below_shape is None:
            yield f"{path}/{key}"
        else:
            yield from _unsaid(below_shape, below, f"{path}/{key if isinstance(objects[0], Record) else '*'}")
