"""A verify for people at a terminal: what is below target first, with suspect and next command; then a table."""

import re
import shlex
from collections.abc import Iterable, Sequence

from rich.console import Console

from nodetune.facts import machine
from nodetune.foundation import by_key, text
from nodetune.report.text import host_names, verify_table
from nodetune.report.text.host_names import unreached
from nodetune.report.text.lines import Lines, some
from nodetune.report.text.verify_table import BELOW, STYLE
from nodetune.verify import diagnosis, efficiency, figures, rooflines, unproven
from nodetune.verify.model import FAILED, PASS, SHORT, SKIP, UNKNOWN, Figure, Verdict
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest

GUTTER = " " * 9
MAX_BELOW_TARGET, MAX_SUBJECTS = 12, 6
PAIR = re.compile(r"GPU(\d+)([→↔])GPU(\d+)")


class Printer:
    """Prints one verify.

    `asked`: the options that select the hosts and how they are judged, for the proposed commands; `propose`: whether to
    propose saving the figures as a baseline; `gpu_hour`: the price of one hour of a GPU.
    """

    def __init__(
        self,
        out: Console,
        verifications: Sequence[HostVerification],
        wanted: SuiteRequest,
        asked: str,
        propose: bool = True,
        gpu_hour: float | None = None,
    ) -> None:
        self._console, self._lines = out, Lines(out)
        self._verifications, self._wanted, self._asked, self._propose = verifications, wanted, asked, propose
        self._gpu_hour = gpu_hour

    def verify(self) -> None:
        """Print the whole report."""
        for verification in self._verifications:
            if verification.state == "ok" or verification.verdicts:
                self._host(verification)
        self._unreached()
        self._summary()

    def _host(self, verification: HostVerification) -> None:
        what = ", ".join(self._wanted.only) or f"suite {self._wanted.suite}"
        self._lines.line(
            (text.plain(verification.host), "bold"),
            f"  {verification.machine.title}  {what}, {verification.seconds:.0f} s",
        )
        self._lines.line("")
        if verification.state != "ok":
            self._lines.line((f"{verification.state}  ", "bold magenta"), verification.message)
        groups = _by_part(verification.short)
        for group in groups[:MAX_BELOW_TARGET]:
            self._short(group)
        if len(groups) > MAX_BELOW_TARGET:
            self._lines.line(f"… and {len(groups) - MAX_BELOW_TARGET} more: --format json lists all", indent=GUTTER)
        self._findings(verification)
        verify_table.print_table(self._console, verification.verdicts)
        ridges = sorted(rooflines.ridges(verification.verdicts).values())
        if ridges:
            between = " to ".join(dict.fromkeys(map(str, (ridges[0], ridges[-1]))))
            told = f"work of fewer than {between} operations per byte waits for memory (bf16 / hbm_read)"
            self._lines.line((f"{'ridge':<9}", STYLE["note"]), told, hang=GUTTER)
        self._worth(verification)
        for metric, matrix in _matrices(verification.verdicts):
            self._matrix(metric, matrix)
        self._disturbed(verification)
        self._unmeasured(verification)
        if not verification.statuses:
            self._lines.line(("results are listed with the hosts of the same measurements", "dim"))
        self._lines.line("")

    def _worth(self, verification: HostVerification) -> None:
        """Print what a watt and, with a price, a unit of money buy."""
        watts = sorted(efficiency.per_watt(verification.verdicts).values())
        prices = sorted(efficiency.per_price(verification.verdicts, self._gpu_hour).values())
        if watts:
            told = f"{_between(watts, 3)} TFLOP/s a watt (bf16, sustained)"
            self._lines.line((f"{'power':<9}", STYLE["note"]), told, hang=GUTTER)
        if prices:
            told = f"{_between(prices, 3)} EFLOP for 1 of your currency, at {self._gpu_hour:g} a GPU hour"
            self._lines.line((f"{'price':<9}", STYLE["note"]), told, hang=GUTTER)

    def _short(self, group: Sequence[Verdict]) -> None:
        """Print the figures of one part that are below target, with one suspect and one command."""
        figure = group[0].figure
        self._lines.line((f"{BELOW:<9}", STYLE[SHORT]), (f"{figure.measurement}  {figure.subject}", "bold"))
        for each in group:
            name = figures.title(each.figure).removeprefix(figure.measurement).strip() or each.figure.metric
            self._lines.line((f"{name}: ", "bold"), _shortfall(each), indent=GUTTER)
        self._lines.line(("suspect  ", "dim"), group[0].suspect, indent=GUTTER, hang=" " * 9)
        self._lines.whole(
            ("next     ", "dim"), (diagnosis.command(figure, self._asked, self._wanted), "green"), indent=GUTTER
        )

    def _findings(self, verification: HostVerification) -> None:
        for found in verification.findings:
            word = BELOW if found.status == SHORT else found.status
            self._lines.line((f"{word:<9}", STYLE[found.status]), found.title)
            if found.subjects:
                self._lines.line(("at       ", "dim"), some(found.subjects, MAX_SUBJECTS), indent=GUTTER, hang=" " * 9)
            if found.next:
                self._lines.line(("next     ", "dim"), found.next, indent=GUTTER, hang=" " * 9)
        if verification.short or verification.findings:
            self._lines.line("")

    def _matrix(self, metric: str, matrix: Sequence[Verdict]) -> None:
        """Print a matrix of senders (rows) and receivers if a pair is an outlier; the best is green, the worst red."""
        values = {_ends(each.figure): each for each in matrix}
        ends = sorted({end for pair in values for end in pair})
        best = max(abs(each.figure.value) for each in matrix)
        self._lines.line("")
        self._lines.whole((f"{metric}, {matrix[0].figure.unit}, from the GPU of the row to that of the column", "bold"))
        self._lines.whole((" " * 6 + "".join(f"{f'GPU{end}':>7}" for end in ends), "dim"))
        for one in ends:
            cells = [(f"{f'GPU{one}':<6}", "dim")]
            for other in ends:
                found = values.get((one, other))
                cells.append(
                    (f"{verify_table.number(found.figure.value):>7}", _heat(found, best))
                    if found
                    else (f"{'·':>7}", "dim")
                )
            self._lines.whole(*cells)

    def _disturbed(self, verification: HostVerification) -> None:
        """Print the load from others during the measurement, and the commands to repeat what is below target."""
        for name, why in verification.disturbed[:MAX_BELOW_TARGET]:
            self._lines.line((f"{'loaded':<9}", "bold magenta"), (name, "bold"), f"  {why}", hang=GUTTER)
        below = {each.figure.measurement: each.figure for each in verification.verdicts if each.disturbed}
        if below:
            told = f"{', '.join(below)}: below target, but other processes used the host, so no part is blamed"
            self._lines.line(told, indent=GUTTER)
        for figure in below.values():
            command = diagnosis.command(figure, self._asked, self._wanted)
            self._lines.whole(("when the host is idle: ", "dim"), (command, "green"), indent=GUTTER)

    def _unmeasured(self, verification: HostVerification) -> None:
        reasons = by_key(((each.status, each.reason), each.name) for each in verification.unmeasured)
        for (status, reason), names in reasons.items():
            self._lines.line(
                (f"{status:<9}", STYLE[status]), (some(names, MAX_SUBJECTS), "bold"), f"  {reason}", hang=GUTTER
            )
        for note in verification.notes:
            self._lines.line((f"{'note':<9}", STYLE["note"]), note, hang=GUTTER)

    def _unreached(self) -> None:
        lost = [each for each in self._verifications if each.state != "ok" and not each.verdicts]
        unreached(self._lines, [(each.state, each.host, each.message) for each in lost], self._again)

    def _summary(self) -> None:
        hosts, counts = totals(self._verifications)
        for line in self._unproven():
            self._lines.line((f"{'unproven':<9}", STYLE[UNKNOWN]), line, hang=GUTTER)
        self._lines.line((hosts, "bold"), counts)
        unproven = [
            each for verification in self._verifications for each in verification.verdicts if not each.disturbed
        ]
        if any(each.status == UNKNOWN and each.expected for each in unproven):
            self._lines.line(
                (
                    "in parentheses: a figure too loose to prove that the hardware is good (docs/project/figures.md)",
                    "dim",
                )
            )
        if self._propose and keepable(self._verifications):
            self._keep()
        elif self._propose and any(each.disturbed for each in self._verifications):
            self._lines.line(("not suitable for a baseline: measure again when the hosts are idle", "dim"))

    def _unproven(self) -> list[str]:
        """Return what was not measured although the GPUs are there, and what is required and did not pass."""
        skips = by_key(
            (each.measurement, verification.host)
            for verification in self._verifications
            for each in unproven.skipped(verification)
        )
        told = [f"{name} was skipped on {host_names.fold(dict.fromkeys(hosts))}" for name, hosts in skips.items()]
        return [*told, *unproven.lacking(self._verifications, self._wanted.require, self._wanted.gpus)]

    def _keep(self) -> None:
        """Print how to save these figures as a baseline. Peers that agree may all be slow."""
        every = [
            each.expected
            for verification in self._verifications
            for each in verification.verdicts
            if each.status == PASS
        ]
        if not any(each and each.kind == "shipped" for each in every):
            self._lines.line(
                ("no result was compared with a known figure: if this hardware is good, save a baseline", "dim")
            )
        self._lines.whole(("save as the baseline: ", "dim"), (f"{self._again} --save-baseline FILE", "green"))

    @property
    def _again(self) -> str:
        """Return the command that was run."""
        return shlex.join(["nodetune", "verify", *shlex.split(self._asked), *self._wanted.words])


def totals(verifications: Sequence[HostVerification]) -> tuple[str, str]:
    """Return the number of measured hosts and the number of figures by result."""
    every = [status for verification in verifications for status in verification.statuses]
    names = {
        PASS: "as expected",
        SHORT: "below target",
        UNKNOWN: "without a reference",
        FAILED: "failed",
        SKIP: "skipped",
    }
    disturbed = sum(bool(each.disturbed) for verification in verifications for each in verification.verdicts)
    numbers = {status: every.count(status) - (disturbed if status == UNKNOWN else 0) for status in names}
    counts = [f"{numbers[status]} {name}" for status, name in names.items() if numbers[status]]
    counts += [f"{disturbed} disturbed"] if disturbed else []
    measured = sum(bool(each.verdicts) for each in verifications)
    return f"{text.count(measured, 'host')} measured", f": {', '.join(counts)}" if counts else ""


def keepable(verifications: Sequence[HostVerification]) -> bool:
    """Return whether these figures are of good hosts: known hardware, none below target, failed, found or disturbed."""
    sound = all(found.status != SHORT for verification in verifications for found in verification.findings)
    statuses = [status for verification in verifications for status in verification.statuses]
    known = any(verification.verdicts and verification.machine != machine.UNKNOWN for verification in verifications)
    quiet = not any(verification.disturbed for verification in verifications)
    return sound and known and quiet and SHORT not in statuses and FAILED not in statuses


def _between(values: Sequence[float], digits: int) -> str:
    """Return `0.93 to 0.96` of sorted values."""
    return " to ".join(dict.fromkeys(f"{each:.{digits}g}" for each in (values[0], values[-1])))


def _matrices(verdicts: Iterable[Verdict]) -> list[tuple[str, list[Verdict]]]:
    """Return the matrices in which a pair is below target, by metric."""
    pairs = (each for each in verdicts if PAIR.fullmatch(each.figure.subject))
    found = by_key((figures.title(each.figure), each) for each in pairs)
    return [(name, each) for name, each in found.items() if len(each) > 2 and any(one.status == SHORT for one in each)]


def _ends(figure: Figure) -> tuple[int, int]:
    found = PAIR.fullmatch(figure.subject)
    return (int(found[1]), int(found[3])) if found else (0, 0)


def _heat(verdict: Verdict, best: float) -> str:
    if verdict.status == SHORT:
        return "bold red"
    share = verdict.figure.value / best if best else 1.0
    return "green" if share > 0.97 else "yellow"


def _by_part(short: Iterable[Verdict]) -> list[list[Verdict]]:
    """Group verdicts that concern the same part."""
    return list(by_key(((each.figure.measurement, each.figure.subject, each.suspect), each) for each in short).values())


def _shortfall(verdict: Verdict) -> str:
    """Return `26.4 GB/s, expected at least 51.7 (7 other GPUs: median 54.38); measured again: 26.4`."""
    figure, expected = verdict.figure, verdict.expected
    told = [verify_table.amount(figure)]
    if expected:
        least = "at least" if figure.sign > 0 else "at most"
        told.append(f", expected {least} {verify_table.number(expected.bound)} ({expected.provenance})")
    if verdict.again:
        told.append(f"; measured again: {verify_table.numbers(verdict.again)}")
    elif verdict.reason:
        told.append(f"; {verdict.reason}")
    return "".join(told)
