"""The exit code of `nodetune verify`."""

from collections.abc import Iterable, Sequence

from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.verify import unproven
from nodetune.verify.model import FAILED, SHORT
from nodetune.verify.run import HostVerification


def exit_code(verifications: Sequence[HostVerification], required: Iterable[str] = (), gpus: Sequence[int] = ()) -> int:
    """Return 5 if a figure is below target, 3 if a host or a measurement is missing or disturbed, otherwise 0.

    A GPU measurement that was skipped is missing where the host has the GPUs, or if `gpus` were asked for. The highest
    wins.
    """
    if any(each.short or any(found.status == SHORT for found in each.findings) for each in verifications):
        return TOO_SLOW
    complete = all(
        each.state == "ok"
        and not any(one.status == FAILED for one in each.unmeasured)
        and not any(one.disturbed for one in each.verdicts)
        # one host of several that measured together tells for all of them: the others have nothing to say
        and (each.verdicts or not each.unmeasured)
        and not unproven.skipped(each)
        for each in verifications
    ) and not unproven.lacking(verifications, required, gpus)
    return OK if complete and any(each.verdicts for each in verifications) else INCOMPLETE
