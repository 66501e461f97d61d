"""Options of commands that measure."""

import ipaddress
from collections.abc import Callable
from typing import Any

import click

from nodetune.cli import requests
from nodetune.cli.requests import of, span
from nodetune.foundation import text

nccl = click.option("--nccl", default="", metavar="PATH", help="Path of libnccl.so.2 on the hosts.")

disk = click.option(
    "--disk",
    default="",
    metavar="DIR",
    help="Also measure the file system of this folder: direct (fio), buffered, small files.",
)


def _network(_context: click.Context, _parameter: click.Parameter, typed: str) -> str:
    """Return the network in canonical form. Raise click.UsageError."""
    try:
        return str(ipaddress.IPv4Network(typed, strict=False)) if typed else ""
    except ValueError:
        raise click.UsageError(f"--network {text.plain(typed)}: write an IPv4 network, such as 10.1.0.0/16") from None


pairs = requests.stack(
    click.option(
        "--pairs", is_flag=True, help="Also measure the network between pairs of hosts, with iperf3 and perftest."
    ),
    click.option(
        "--network",
        default="",
        callback=_network,
        metavar="CIDR",
        help="Network for --pairs (10.1.0.0/16). Default: the network of the default route.",
    ),
)


def gpus(told: str) -> Callable[[Any], Any]:
    """Return --gpu with this help."""
    number = click.IntRange(0, 1023)
    return click.option(
        "--gpu", "gpus", type=number, multiple=True, callback=requests.sorted_numbers, metavar="N", help=told
    )


def known_measurements(_context: click.Context, _parameter: click.Parameter, typed: tuple[str, ...]) -> tuple[str, ...]:
    """Return known measurements, each once. Raise click.UsageError."""
    from nodetune.verify import remote  # most commands measure nothing

    known = remote.names() if typed else ()
    for name in typed:
        if name not in known:
            raise click.UsageError(f"unknown measurement {text.plain(name)}: choose from {', '.join(known)}")
    return tuple(dict.fromkeys(typed))


def only(told: str) -> Callable[[Any], Any]:
    """Return --only with this help."""
    return click.option("--only", multiple=True, is_eager=True, callback=known_measurements, metavar="NAME", help=told)


def load_seconds(request: type[Any]) -> Callable[[Any], Any]:
    """Return --load-seconds with the default and the range of a request."""
    told = "Run all GPUs under load for this time, and watch clocks, power and temperature."
    return click.option("--load-seconds", **of(request, "load_seconds"), metavar="N", help=told)


def environment(told: str) -> Callable[[Any], Any]:
    """Return --env with this help."""
    return click.option("--env", multiple=True, callback=requests.environment, metavar="NAME=VALUE", help=told)


def budget(seconds: float) -> Callable[..., Any]:
    """Return the option `--budget` with a request's default, which is in whole minutes."""
    return click.option(
        "--budget",
        default=f"{seconds / 60:.0f}m",
        show_default=True,
        callback=span,
        metavar="TIME",
        help="Maximum time to measure (90s, 20m, 2h).",
    )
