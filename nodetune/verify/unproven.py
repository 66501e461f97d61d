"""Measurements that a run leaves unproven: skipped although the GPUs are there, or required and not passed."""

from collections.abc import Iterable, Sequence

from nodetune.verify import catalogue
from nodetune.verify.model import FAILED, PASS, SHORT, SKIP, UNKNOWN, Unmeasured, Verdict
from nodetune.verify.run import HostVerification

OF_GPUS = ("gpus", "collective")


def skipped(verification: HostVerification) -> list[Unmeasured]:
    """Return the GPU measurements that were skipped although the host has enough GPUs on its PCI bus for them.

    Not those without a single metric, such as a number format that the GPU lacks.
    """
    return [
        each
        for each in verification.unmeasured
        if each.status == SKIP and not each.metric and _possible(each.measurement, verification.machine.most_gpus)
    ]


def _possible(name: str, gpus: int) -> bool:
    known = catalogue.of(name)
    return known.scope in OF_GPUS and gpus >= known.gpus


def lacking(verifications: Sequence[HostVerification], required: Iterable[str], gpus: Sequence[int] = ()) -> list[str]:
    """Return one line for each required measurement that did not pass, whatever the reason, with its hosts.

    Also for hosts on which nothing was measured on any GPU although `gpus` were asked for.
    """
    found = [f"--gpu: nothing was measured on {_named(gpus)} ({host})" for host in _without(verifications, gpus)]
    for name in required:
        shared = catalogue.of(name).scope in ("pair", "collective")
        every = [verdict for each in verifications for verdict in _of(name, each)]
        hosts = {
            each.host: why
            for each in verifications
            if (why := _why(name, each, _of(name, each) or (every if shared else []), shared=shared))
        }
        found += [f"{name} is required: {why} ({host})" for host, why in hosts.items()]
    return found


def _named(gpus: Iterable[int]) -> str:
    return ", ".join(f"GPU{number}" for number in gpus)


def _without(verifications: Sequence[HostVerification], gpus: Sequence[int]) -> list[str]:
    """Return the hosts without any figure of a GPU, if some were asked for. A collective counts for all of its hosts."""
    scopes = {
        each.host: {catalogue.of(verdict.figure.measurement).scope for verdict in each.verdicts}
        for each in verifications
        if each.state == "ok"
    }
    if not gpus or any("collective" in each for each in scopes.values()):
        return []
    return [host for host, found in scopes.items() if "gpus" not in found]


def _of(name: str, verification: HostVerification) -> list[Verdict]:
    return [each for each in verification.verdicts if each.figure.measurement == name]


def _why(name: str, verification: HostVerification, verdicts: Sequence[Verdict], *, shared: bool) -> str:
    """Return why a host's figures do not prove the measurement; empty if they do."""
    if verification.state != "ok":
        return verification.state
    lost = [each for each in verification.unmeasured if each.measurement == name and each.status in (SKIP, FAILED)]
    if lost and not (shared and verdicts):
        return f"{lost[0].status}: {lost[0].reason}"
    if not verdicts:
        return "not measured"
    doubtful = [each for each in verdicts if each.status not in (PASS, SHORT)]
    if doubtful:
        first = doubtful[0]
        why = first.reason if first.status == UNKNOWN else first.status
        return f"{len(doubtful)} of {len(verdicts)} figures prove nothing, {first.figure.metric} of {first.figure.subject}: {why}"
    return ""
