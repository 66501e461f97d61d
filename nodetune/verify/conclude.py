"""From a verify to what it concludes: figures below target, wrong data, paths that were not used. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from nodetune import __version__
from nodetune.api import faults
from nodetune.api.conclusion import (
    ACCEPTED,
    MEASURED,
    OPEN,
    UNKNOWN,
    Conclusion,
    Examination,
    Examined,
    Judged,
    Next,
    joined,
    unreached,
)
from nodetune.api.device import Device
from nodetune.foundation import by_key, text
from nodetune.verify import diagnosis, figures, reach
from nodetune.verify.catalogue import takes_two_hosts
from nodetune.verify.findings import BY_MEASUREMENT
from nodetune.verify.model import FAILED, NOTE, PASS, SHORT, Figure, Verdict
from nodetune.verify.run import HostVerification

SOURCE = "verify"
BELOW, WRONG, NO_FIGURE, THROTTLED = "figure-below-target", "data-wrong", "measurement-failed", "gpu-throttled"


def concluded(verifications: Iterable[HostVerification], now: int) -> Examined:
    """Return what a verify concludes. `now`: Unix time of its end."""
    every = list(verifications)
    met = [each.host for each in every if any(reach.is_of_port(verdict.figure) for verdict in each.verdicts)]
    return joined(_of_host(each, met, now) for each in every)


def _of_host(measured: HostVerification, met: Sequence[str], now: int) -> Examined:
    reached = unreached([(measured.host, measured.state, measured.message, now)], __version__)
    if measured.state != "ok":
        return reached
    every = [*_figures(measured.verdicts, now), *_errors(measured, now), *_findings(measured, now)]
    others = by_key((host, each) for each in measured.verdicts for host in _hosts(each.figure) if host != measured.host)
    looked = [
        Examination(
            SOURCE, measured.host, now, __version__, tuple(_judged(measured.verdicts, met)), _unjudged(measured)
        ),
        *(
            Examination(SOURCE, host, now, __version__, tuple(_compared(verdicts)))
            for host, verdicts in sorted(others.items())
        ),
    ]
    return reached + Examined(tuple(every), tuple(looked))


def _hosts(figure: Figure) -> tuple[str, ...]:
    """Return the hosts of a figure: those of a pair, in their order, or the one that measured."""
    pair = diagnosis.hosts(figure.subject) if takes_two_hosts(figure.measurement) else []
    return tuple(pair) if len(pair) == 2 else (figure.host,)


def device(subject: str) -> Device | None:
    """Return the device that a subject names; None for the host as a whole."""
    if subject in ("", "host"):
        return None
    kind = "link" if "→" in subject or "↔" in subject else "gpu" if diagnosis.GPU.fullmatch(subject) else ""
    return Device(subject, kind=kind)


def _figures(verdicts: Sequence[Verdict], now: int) -> Iterator[Conclusion]:
    for verdict in verdicts:
        figure, expected = verdict.figure, verdict.expected
        if verdict.status != SHORT or expected is None or reach.is_of_port(figure):
            continue
        subject = text.plain(figure.subject)
        told = f"{figures.title(figure)} of {subject}: {figure.value:.4g} {figure.unit}, target {expected.bound:.4g} {figure.unit}"
        again = [f"measured again: {value:.4g} {figure.unit}" for value in verdict.again]
        yield faults.found(
            BELOW,
            _hosts(figure),
            told + (f": {verdict.suspect}" if verdict.suspect else ""),
            now,
            device(subject),
            figures.title(figure),
            sure=MEASURED,
            observed=figure.value,
            wanted=expected.bound,
            evidence=(f"{expected.kind}: {expected.provenance}", *again),
            next=_measure(figure),
        )


def _measure(figure: Figure) -> Next:
    gpus = [
        word for gpu in dict.fromkeys(diagnosis.gpus(figure.subject)) for word in ("--gpu", gpu.removeprefix("GPU"))
    ]
    return Next("verify", ("--only", figure.measurement, *gpus), _hosts(figure))


def _errors(measured: HostVerification, now: int) -> Iterator[Conclusion]:
    """Yield the measurements that ended with an error: their figures are unknown."""
    for missing in measured.unmeasured:
        if missing.status == FAILED:
            yield faults.found(
                NO_FIGURE,
                (measured.host,),
                f"{missing.measurement} was not measured: {text.plain(missing.reason)}",
                now,
                device(text.plain(missing.subject)),
                missing.measurement,
                state=UNKNOWN,
                next=Next("verify", ("--only", missing.measurement), (measured.host,)),
                reason=text.plain(missing.reason),
            )


def _findings(measured: HostVerification, now: int) -> Iterator[Conclusion]:
    for found in measured.findings:
        low = faults.row(found.fault).severity == "low"
        for subject in found.subjects or ("",):
            yield faults.found(
                found.fault,
                tuple(sorted(found.hosts)) or (measured.host,),
                f"{text.plain(found.title)}: {text.plain(subject)}" if subject else text.plain(found.title),
                now,
                device(text.plain(subject)) if found.fault in (WRONG, THROTTLED) else found.device,
                _about_of(found.fault, found.title, subject),
                state=ACCEPTED if found.status == NOTE and not low else OPEN,
                sure=MEASURED,
                next=Next(text=found.next),
            )


def _about_of(fault: str, title: str, subject: str) -> str:
    """Return what a finding is about in addition to its device: of wrong data the measurement, for another one proves nothing."""
    if fault == WRONG:
        return title.partition(":")[0]
    return "" if fault == THROTTLED else text.plain(subject)


def _compared(verdicts: Iterable[Verdict]) -> Iterator[Judged]:
    """Yield each figure that was compared with something: of a path it is judged at both ends."""
    by_figure = by_key((figures.title(each.figure), each.figure) for each in verdicts if each.status in (PASS, SHORT))
    for about, measured_by in by_figure.items():
        yield Judged(BELOW, about, _places(measured_by))


def _judged(verdicts: Sequence[Verdict], met: Sequence[str]) -> Iterator[Judged]:
    """Yield what was judged: each figure that was compared with something, and the other faults that its measurement shows."""
    yield from _compared(verdicts)
    by_name = by_key((each.figure.measurement, each.figure) for each in verdicts)
    for name, measured_by in by_name.items():
        yield Judged(NO_FIGURE, name)
        yield Judged(WRONG, name, _places(measured_by))
        for fault in BY_MEASUREMENT.get(name, ()):
            yield Judged(fault, None, _only(fault, measured_by, met))


def _only(fault: str, measured_by: Iterable[Figure], met: Sequence[str]) -> frozenset[str] | None:
    """Return the devices on which a fault was judged that a measurement shows; None for the host."""
    if fault in reach.FAULTS:
        return reach.places(measured_by, met)
    return _places(measured_by) if fault == THROTTLED else None


def _places(every: Iterable[Figure]) -> frozenset[str] | None:
    """Return the names of the devices of these figures, and of all parts of a path; None if one is of the whole host."""
    subjects = {text.plain(each.subject) for each in every}
    return None if subjects & {"", "host"} else frozenset(subjects)


def _unjudged(measured: HostVerification) -> dict[str, str]:
    """Return what could not be measured or compared, with the reason."""
    reasons: dict[str, str] = {}
    for missing in measured.unmeasured:
        if missing.status == FAILED:
            reasons.setdefault(NO_FIGURE, f"{missing.measurement}: {text.plain(missing.reason)}")
    unknown = [each for each in measured.verdicts if each.status not in (PASS, SHORT)]
    if unknown:
        reasons[BELOW] = text.plain(unknown[0].disturbed or unknown[0].reason or "no reference")
    return reasons
