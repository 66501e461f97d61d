"""The bytes that each NVLink of a GPU carried, as NVML counts them: for the measurements nvlink and nccl."""

from . import gpus

MAX_LINKS = 18
SENT = "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX"
MIN_BYTES = 1 << 20
"""KiB that a group of links must have carried: less is not what this program sent."""


def least(seen, before):
    """Return the figure of the link that has carried least of its share since `before`; None if no link carried anything."""
    after = sent(seen)
    carried = {link: after[link] - before[link] for link in before if link in after}
    found = [share for group in groups(seen, carried) for share in shares(group).items()]
    if not found:
        return None
    link, share = min(found, key=lambda each: each[1])
    about = {"link": link, "links": len(found), "carried": {str(each): kib >> 10 for each, kib in carried.items()}}
    return dict(about, samples=[share], unit="%", metric="least_link")


def active(seen):
    """Return the numbers of a GPU's active links."""
    return [link for link in range(MAX_LINKS) if seen.ask("nvmlDeviceGetNvLinkState", link) == 1]


def sent(seen):
    """Return {link: KiB sent since some moment} of the active links whose bytes the driver counts."""
    field = getattr(seen.library, SENT, None)
    links = active(seen)
    values = seen.ask("nvmlDeviceGetFieldValues", [(field, link) for link in links]) if field and links else None
    return {link: each.value.ullVal for link, each in zip(links, values or ()) if each.nvmlReturn == 0}


def groups(seen, carried):
    """Split {link: KiB} by what is at the other end; switches, and ends that nobody names, are one."""
    found = {}
    for link, kib in carried.items():
        kind = seen.ask("nvmlDeviceGetNvLinkRemoteDeviceType", link)
        end = seen.ask("nvmlDeviceGetNvLinkRemotePciInfo", link) if kind == 0 else None  # 0: a GPU
        found.setdefault(gpus.bdf(end.busId) if end else "", {})[link] = kib
    return list(found.values())


def shares(group):
    """Return {link: % of the average of its group}; nothing of a single link or where too little was carried."""
    average = sum(group.values()) / len(group)
    if len(group) < 2 or sum(group.values()) < MIN_BYTES:
        return {}
    return {link: 100.0 * kib / average for link, kib in group.items()}
