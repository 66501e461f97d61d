"""Settings of a host's kernel that a trial holds for a while, and the site file that keeps them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.api.facts_view import FactAbsentError, FactUnreadError, value_of
from nodetune.api.model import HostFacts
from nodetune.onhost import sysctl
from nodetune.tune.benches import runs
from nodetune.tune.model import BenchError, Case, Choice, Parameter, Setting

Files = Mapping[str, str]
"""Path → text that is written."""


@dataclass(frozen=True)
class Knob:
    """One thing to turn: a parameter, and what is written for each choice.

    `judged_by`: checks that judge the same setting: the proposal puts its own in their place. `kept_by`: the check that is to
    want the choice instead, where a file would be another's after a reboot.
    """

    parameter: Parameter
    files: Callable[[Choice], Files]
    judged_by: tuple[str, ...] = ()
    kept_by: str = ""


def written(knobs: Sequence[Knob], setting: Setting) -> dict[str, str]:
    """Return all that is written for a setting."""
    chosen = dict(setting)
    found: dict[str, str] = {}
    for knob in knobs:
        if knob.parameter.name in chosen:
            found |= knob.files(chosen[knob.parameter.name])
    return found


def item(name: str, measured: Mapping[str, Any], files: Files) -> dict[str, Any]:
    """Return a measurement's line of a plan that holds these files."""
    held = {"hold": dict(files), "allow_settings": True} if files else {}
    return {"name": name, "options": {**measured, **held}}


class KnobBench:
    """What the benches have in common that turn knobs of a host's kernel."""

    knobs: Sequence[Knob]
    _cases: Sequence[Case]

    @property
    def parameters(self) -> Sequence[Parameter]:
        return tuple(knob.parameter for knob in self.knobs)

    @property
    def cases(self) -> Sequence[Case]:
        return self._cases

    def allowed(self, setting: Setting) -> bool:
        """Return whether these values are all known."""
        known = {knob.parameter.name: knob.parameter.choices for knob in self.knobs}
        return all(value in known.get(name, ()) for name, value in setting)

    def proposal(self, setting: Setting) -> Mapping[str, Any]:
        """Return a setting as a part of a site file: a check of its own for each file, and the profile's checks off."""
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
    return {"id": f"site-tuned-{words}", kind: name, "accept": value, "set": value, "why": "nodetune tune found it."}


def _value(text: str) -> Any:
    words = [int(word) if word.isdigit() else word for word in text.split()]
    return words[0] if len(words) == 1 else words


def common(facts: Mapping[str, HostFacts | str], name: str) -> Any:
    """Return a fact's value, which all hosts share. Raise BenchError where it is not known, or where hosts differ."""
    found = {host: _known(host, given, name) for host, given in sorted(facts.items())}
    first, *others = found
    differing = next((host for host in others if found[host] != found[first]), None)
    if differing is not None:
        both = f"{found[first]} and {found[differing]}"
        raise BenchError(f"{first} and {differing} differ in {name} ({both}): make them alike, then tune")
    return found[first]


def _known(host: str, facts: HostFacts | str, name: str) -> Any:
    if isinstance(facts, str):
        raise BenchError(runs.of_host(host, facts))
    try:
        return value_of(name, facts.get(name))
    except (FactAbsentError, FactUnreadError) as problem:
        raise BenchError(f"{host}: {name} could not be read: {problem}") from None
