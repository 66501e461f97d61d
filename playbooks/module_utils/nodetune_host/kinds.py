"""The kinds of resources by name, and calls that suit each of them.

Ansible sends along what an import names, nothing else. So each kind is named here.
"""

import operator
import os
import sys
import traceback
import types

from . import resources
from .problem import ChangeError, StopError, why
from .resources import (
    bootarg,
    cpu,
    edit,
    file,
    gpu,
    guarded,
    irqs,
    link,
    module,
    mount,
    program,
    slurm,
    swap,
    unit,
    value,
)


def named(kind):
    """Return the module of a kind of resource, or None."""
    found = vars(resources).get(kind)
    return found if isinstance(found, types.ModuleType) else None


def resource_of(change):
    return named(change["change"])


def label_of(change):
    """Name the resource of a change, even if this version does not know its kind."""
    resource = named(str(change.get("change")))
    return resource.label(change) if resource else str(change)[:100]


def same(change, one, other):
    return getattr(resource_of(change), "same", operator.eq)(one, other)


def identity(change):
    """Return what identifies the resource of a change, to find other changes of it."""
    kind = "file" if change["change"] == "edit" else change["change"]
    return kind, resource_of(change).label(change)


def attempt(function, *arguments):
    """Call a function of a resource. Raise ChangeError for any fault in it: the other changes continue."""
    try:
        return function(*arguments)
    except (ChangeError, StopError):
        raise
    except OSError as error:
        raise ChangeError(f"{error.filename or 'the system'}: {why(error)}") from None
    except Exception as fault:
        place = traceback.extract_tb(sys.exc_info()[2])[-1]
        where = f"{os.path.basename(place.filename)} line {place.lineno}"
        raise ChangeError(
            f"a fault in nodetune ({where}): {type(fault).__name__}: {' '.join(str(fault).split())}"
        ) from None
