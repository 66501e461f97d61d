"""Judge the files of NCCL's Inspector, or ask the RAS service of a job."""

from __future__ import annotations

import time
from collections.abc import Callable

from nodetune.foundation import UserError, text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.jobs.late_ranks import inspector, judge, ras_answer, ras_client, ras_judge
from nodetune.jobs.late_ranks.model import PROGRAM, SlowRanks
from nodetune.jobs.late_ranks.ras_judge import RasStatus
from nodetune.jobs.late_ranks.request import SlowRequest, address


def run(request: SlowRequest, sleep: Callable[[float], None] = time.sleep) -> SlowRanks | RasStatus:
    """Return what was found. Raise UserError."""
    if request.inspector is None:
        return _ras(request, sleep)
    if not request.inspector.is_dir() and not request.inspector.is_file():
        raise UserError(f"{text.plain(request.inspector)} is not a folder, and not a file")
    try:
        jobs, notes = inspector.read(request.inspector)
    except OSError as problem:
        raise UserError(f"{text.plain(request.inspector)}: {(problem.strerror or str(problem)).lower()}") from None
    return judge.judged(jobs, notes)


def exit_code(found: SlowRanks | RasStatus) -> int:
    """Return 1 for a late or missing rank, 3 if something could not be judged, else 0: a program's imbalance does not count."""
    if isinstance(found, RasStatus):
        return INCOMPLETE if found.problem or found.text else FINDINGS if found.findings else OK
    if any(each.cause != PROGRAM for each in found.conclusions):
        return FINDINGS
    return INCOMPLETE if any(each.undecided or each.unjudged for each in found.jobs) else OK


def _ras(request: SlowRequest, sleep: Callable[[float], None]) -> RasStatus:
    host, port = address(request.ras)
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        answer = ras_client.ask(host, port)
        if ras_answer.is_text(answer):
            return RasStatus(shown, text=answer)
        first = ras_answer.read(answer)
        sleep(request.pause)
        second = ras_answer.read(ras_client.ask(host, port))
    except ras_client.NoAnswerError as problem:
        return RasStatus(shown, str(problem))
    except ras_answer.UnreadableError:
        return RasStatus(shown, "what answers is not NCCL's RAS service, or its answer was cut")
    return ras_judge.judged(shown, first, second, request.pause)
