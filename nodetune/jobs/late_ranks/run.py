"""Judge the files of NCCL's Inspector, or ask the RAS service of a job."""

import time
from collections.abc import Callable

from nodetune.foundation import UserError, text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.jobs.late_ranks import analysis, inspector, ras_client, ras_response, ras_status
from nodetune.jobs.late_ranks.model import PROGRAM, SlowRanks
from nodetune.jobs.late_ranks.ras_status import RasStatus
from nodetune.jobs.late_ranks.request import SlowRequest, address


def run(request: SlowRequest, sleep: Callable[[float], None] = time.sleep) -> SlowRanks | RasStatus:
    """Return what was found. Raise UserError or OSError."""
    if request.inspector is None:
        return _ras(request, sleep)
    if not request.inspector.is_dir() and not request.inspector.is_file():
        raise UserError(f"{text.plain(request.inspector)} is not a folder, and not a file")
    return analysis.find_late_ranks(*inspector.read(request.inspector))


def exit_code(result: SlowRanks | RasStatus) -> int:
    """Return 1 for a late or missing rank, 3 if something could not be judged, else 0: a program's imbalance does not count."""
    if isinstance(result, RasStatus):
        return INCOMPLETE if result.problem or result.text else FINDINGS if result.findings else OK
    if any(cause.cause != PROGRAM for cause in result.causes):
        return FINDINGS
    return INCOMPLETE if any(job.undecided or job.not_compared for job in result.jobs) else OK


def _ras(request: SlowRequest, sleep: Callable[[float], None]) -> RasStatus:
    host, port = address(request.ras)
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        response = ras_client.ask(host, port)
        if ras_response.is_text(response):
            return RasStatus(shown, text=response)
        first = ras_response.read(response)
        sleep(request.pause)
        second = ras_response.read(ras_client.ask(host, port))
    except ras_client.RasError as problem:
        return RasStatus(shown, str(problem))
    except ras_response.UnreadableError:
        return RasStatus(shown, "what answers is not NCCL's RAS service, or its answer was cut")
    return ras_status.compare(shown, first, second, request.pause)
