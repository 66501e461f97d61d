"""Runs pynvml's wrappers on a library that notes how it is called and fills in what was recorded."""

import ctypes
import sys

try:
    import pynvml
except ImportError:
    sys.exit("generate.py: no pynvml in this Python: give make PYTHON=… with the package nvidia-ml-py")

INSUFFICIENT_SIZE = 7


class Gpu(int):
    """Stands for a GPU's handle in a call."""


class Tracer:
    """A library function that notes its arguments and has `fill` put an answer into them."""

    def __init__(self, fill, code):
        self.fill, self.code, self.function, self.shape, self.row = fill, code, None, "", None

    def __call__(self, *arguments):
        shape, outs, inputs = "", [], []
        listed = arguments[-1] is None or isinstance(arguments[-1], ctypes.Array)
        counted = len(arguments) > 1 and listed and hasattr(arguments[-2], "_obj")
        for at, argument in enumerate(arguments):
            kind = self._kind(argument, at, arguments, counted)
            shape += kind
            if kind in "di":
                inputs.append(int(getattr(argument, "value", argument)))
            elif kind == "r":
                inputs.append(argument._obj.version)
            if kind in "osrca":
                outs.append((at, getattr(argument, "_obj", argument)))
        self.shape = shape
        code = self.code if self.code is not None else self.fill([one for _, one in outs])
        results = () if code else tuple((at, bytes(one) if one is not None else b"") for at, one in outs)
        self.row = (code or 0, tuple(inputs), results)
        return code or 0

    @staticmethod
    def _kind(argument, at, arguments, counted):
        """d GPU, i number, o result, r structure that tells its version, s text, n its size, c count, a array."""
        if isinstance(argument, Gpu):
            return "d"
        if counted and at >= len(arguments) - 2:
            return "ca"[at - len(arguments) + 2]
        if hasattr(argument, "_obj"):
            return "r" if hasattr(argument._obj, "version") else "o"
        if isinstance(argument, ctypes.Array):
            return "s"
        return "n" if at and isinstance(arguments[at - 1], ctypes.Array) else "i"


def assign(target, answer):
    """Put recorded JSON into a structure, a number, a text or an array of them."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            member = getattr(target, name)
            if isinstance(value, (dict, list)):
                assign(member, value)
            else:
                setattr(target, name, value.encode() if isinstance(value, str) else value)
    elif isinstance(answer, list):
        for at, value in enumerate(answer):
            if isinstance(value, (dict, list)):
                assign(target[at], value)
            else:
                target[at] = value
    else:
        target.value = answer.encode() if isinstance(answer, str) else answer


def fillers(answer, scalar_members=()):
    """The ways in which an answer may have to be put into the arguments, to be tried in turn."""
    if answer == []:
        yield lambda outs: None  # a count of zero
    if isinstance(answer, list):
        yield lambda outs: [assign(out, value) for out, value in zip(outs, answer, strict=True)] and 0
        yield lambda outs: _counted(outs, answer)
        yield lambda outs: assign(outs[0], answer + [pynvml.NVML_PSTATE_UNKNOWN] * (len(outs[0]) - len(answer)))
        yield lambda outs: assign(outs[0], dict(zip(scalar_members, answer, strict=True)))
    yield lambda outs: assign(outs[0], answer)
    yield lambda outs: [assign(out, answer) for out in outs] and 0
    for name in scalar_members:
        yield lambda outs, name=name: assign(outs[0], {name: answer})


def _counted(outs, answer):
    """The protocol of lists: the first call learns the count."""
    if outs[1] is None:
        outs[0].value = len(answer)
        return INSUFFICIENT_SIZE
    assign(outs[1], answer)
    return 0


def plain(answer):
    """What a wrapper returned, as the recording writes it."""
    if isinstance(answer, bytes):
        return answer.decode()
    if isinstance(answer, (list, tuple, ctypes.Array)):
        return [plain(one) for one in answer]
    if isinstance(answer, ctypes.Structure):
        return {field[0]: plain(getattr(answer, field[0])) for field in answer._fields_}
    return answer.value if hasattr(answer, "value") else answer


def within(recorded, played):
    """Whether all that was recorded is played; a recording may tell fewer members of a structure."""
    if isinstance(recorded, dict) and isinstance(played, dict):
        return all(name == "version" or within(value, played.get(name)) for name, value in recorded.items())
    return recorded == played


def traced(wrapper, arguments, fill, code=None):
    """Runs a wrapper: (tracers of the C functions that it called, what it returned or None)."""
    called = []

    def point(name):
        tracer = Tracer(fill, code)
        tracer.function = name
        called.append(tracer)
        return tracer

    pynvml._nvmlGetFunctionPointer = point
    try:
        return called, plain(wrapper(*arguments))
    except pynvml.NVMLError as problem:
        return called, {"error": problem.value}


def members_of(wrapper, arguments):
    """The members of the structure that a wrapper passes: one of them may be what it returns."""
    found = []

    def look(outs):
        found.extend(field[0] for field in getattr(outs[0], "_fields_", ()) if field[0] != "version")

    try:
        traced(wrapper, arguments, look)
    except (TypeError, ValueError, AttributeError, IndexError):
        return []
    return found
