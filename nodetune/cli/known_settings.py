"""The options that a settings file may set: key → option, which no file has to give. Imported where there is such a file."""

from nodetune.cli import change_options
from nodetune.cli.host_options import hosts_or_pods
from nodetune.cli.options import history, judging, notify
from nodetune.cli.requests import stack
from nodetune.cli.settings import Setting
from nodetune.remediation.request import ApplyRequest


@stack(
    hosts_or_pods,
    judging,
    history,
    notify,
    change_options.runs_folder,
    change_options.waits(ApplyRequest),
    change_options.drain,
    change_options.batches(ApplyRequest),
)
def _every() -> None:
    """Has every option that is a setting."""


KNOWN = {each.key: each for each in getattr(_every, "__click_params__", ()) if isinstance(each, Setting)}
