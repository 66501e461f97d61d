"""The receiver of --notify: its URL, which often holds a secret, and telling it what changed."""

import click

from nodetune.api.conclusion import Examined
from nodetune.cli import settings
from nodetune.cli.terminal import Terminal
from nodetune.foundation.request import RequestError
from nodetune.report.notify import run
from nodetune.report.notify.receiver import Receiver


def shown(url: str) -> str:
    """Return where notices go, without user, password and path."""
    return f"{url.partition('://')[0]}://{Receiver.parse(url).name}/…"


def checked(context: click.Context, parameter: settings.Setting, url: str) -> str:
    """Return the URL, before any host is contacted. Raise RequestError; SettingsError for one of a file or a variable."""
    try:
        Receiver.parse(url)
    except RequestError as problem:
        if settings.is_implicit(context, str(parameter.name)):
            raise settings.SettingsError(f"{settings.origin(context, parameter)}: {problem}") from None
        raise
    settings.refuse_folder("notify", "where notices go")
    return url


def tell(url: str, found: Examined, selected: str, fail_on: str = "medium") -> None:
    """Notify the receiver. That it took nothing is a warning. `selected`: see report/notify/run.py."""
    if problem := run.notify(url, found, selected, fail_on):
        Terminal().warn(problem)
