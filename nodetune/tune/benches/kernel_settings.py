"""Kernel settings that a trial changes temporarily, and the site file that persists them. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.api.facts_view import FactAbsentError, FactUnreadError, value_of
from nodetune.api.model import HostFacts
from nodetune.foundation import text as plain_text
from nodetune.onhost import sysctl
from nodetune.tune.benches import runs
from nodetune.tune.model import BenchError, Case, Choice, OneByOne, Parameter, Setting

Files = Mapping[str, str]
"""Path → text to write."""


@dataclass(frozen=True)
class Knob:
    """A tunable parameter and the texts to write for each choice.

    `judged_by`: checks of the same setting, which the proposal replaces by its own. `kept_by`: the check that
    gets the choice instead if the file may belong to another device after a reboot.
    """

    parameter: Parameter
    files: Callable[[Choice], Files]
    judged_by: tuple[str, ...] = ()
    kept_by: str = ""


def written(knobs: Sequence[Knob], setting: Setting) -> dict[str, str]:
    """Return everything to write for a setting."""
    chosen = dict(setting)
    found: dict[str, str] = {}
    for knob in knobs:
        if knob.parameter.name in chosen:
            found |= knob.files(chosen[knob.parameter.name])
    return found


def item(name: str, measured: Mapping[str, Any], files: Files) -> dict[str, Any]:
    """Return a plan item for a measurement with these files set."""
    held = {"hold": dict(files), "allow_settings": True} if files else {}
    return {"name": name, "options": {**measured, **held}}


class KnobBench(OneByOne):
    """Base class of the benches that change kernel settings."""

    knobs: Sequence[Knob]
    _cases: Sequence[Case]

    @property
    def parameters(self) -> Sequence[Parameter]:
        return tuple(knob.parameter for knob in self.knobs)

    @property
    def cases(self) -> Sequence[Case]:
        return self._cases

    def allowed(self, setting: Setting) -> bool:
        """Return whether all these values are known."""
        known = {knob.parameter.name: knob.parameter.choices for knob in self.knobs}
        return all(value in known.get(name, ()) for name, value in setting)

    def proposal(self, setting: Setting) -> Mapping[str, Any]:
        """Return a setting as part of a site file: a new check for each file, with the profile's checks off."""
        chosen = dict(setting)
        turned = [knob for knob in self.knobs if knob.parameter.name in chosen]
        checks: dict[str, Any] = dict.fromkeys(sorted({each for knob in turned for each in knob.judged_by}), False)
        checks |= {knob.kept_by: {"accept": chosen[knob.parameter.name]} for knob in turned if knob.kept_by}
        added = [_check(path, text) for path, text in written([k for k in turned if not k.kept_by], setting).items()]
        return {**({"checks": checks} if checks else {}), **({"add": added} if added else {})}


def _check(path: str, text: str) -> dict[str, Any]:
    kind, name = ("sysctl", sysctl.name_of(path)) if path.startswith(sysctl.ROOT) else ("sysfs", path)
    value = _value(text)
    words = "".join(letter if letter.isalnum() else "-" for letter in name.lower().strip("/"))
    return {"id": f"site-tuned-{words}", kind: name, "accept": value, "set": value, "why": "Found by nodetune tune."}


def _value(text: str) -> Any:
    words = [word if (number := plain_text.whole(word)) is None else number for word in text.split()]
    return words[0] if len(words) == 1 else words


def common(facts: Mapping[str, HostFacts | str], name: str) -> Any:
    """Return the value of a fact that all hosts share. Raise BenchError if it is unknown or hosts differ."""
    found = {host: _known(host, given, name) for host, given in sorted(facts.items())}
    first, *others = found
    differing = next((host for host in others if found[host] != found[first]), None)
    if differing is not None:
        both = f"{found[first]} and {found[differing]}"
        raise BenchError(f"{first} and {differing} differ in {name} ({both}): make them equal, then tune")
    return found[first]


def optional(facts: Mapping[str, HostFacts | str], name: str) -> Any:
    """Return the value of a fact that all hosts share; None if it is unknown or hosts differ."""
    try:
        return common(facts, name)
    except BenchError:
        return None


def _known(host: str, facts: HostFacts | str, name: str) -> Any:
    if isinstance(facts, str):
        raise BenchError(runs.of_host(host, facts))
    try:
        return value_of(name, facts.get(name))
    except (FactAbsentError, FactUnreadError) as problem:
        raise BenchError(f"{host}: {name} could not be read: {problem}") from None
