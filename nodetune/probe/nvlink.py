"""NVLink, the NVSwitch fabric and peer-to-peer access as reported by NVML: part of `gpu.*`."""

from . import nvml, read

HOPPER, BLACKWELL = 9, 10
FABRIC_STATES = {1: "not_started", 2: "in_progress", 3: "completed"}
FABRIC_HEALTH = (
    ("degraded_bandwidth", 0, 3, {1: "yes", 2: "no"}),
    ("route_recovery", 2, 3, {1: "yes", 2: "no"}),
    ("route_unhealthy", 4, 3, {1: "yes", 2: "no"}),
    ("access_timeout_recovery", 6, 3, {1: "yes", 2: "no"}),
    (
        "incorrect_configuration",
        8,
        15,
        {
            1: "none",
            2: "system GUID",
            3: "chassis serial number",
            4: "no partition",
            5: "too few NVLinks",
            6: "incompatible GPU firmware",
            7: "invalid location",
            8: "invalid GPU state",
        },
    ),
    ("partition_assigned", 12, 3, {1: "yes", 2: "no"}),
    ("manager", 14, 3, {1: "connected", 2: "disconnected"}),
)
FABRIC_SUMMARY = {1: "healthy", 2: "unhealthy", 3: "limited capacity"}
NVLINK_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
NVLINK_REMOTES = {0: "gpu", 1: "cpu", 2: "switch", 255: "unknown"}
NVLINK_LIMIT = 36
NVLINK_BY_LINK = {
    "speed": (84, 132),
    "crc_flit": (32, 96),
    "crc_data": (39, 102),
    "replay": (46, 108),
    "recovery": (53, 114),
}
"""Up to Ada, each link has its own fields: links 0-5 from the first number, links 6-11 from the second."""
NVLINK_BY_SCOPE = {"speed": 164, "crc": 163, "replay": 161, "recovery": 162}
"""Hopper: one field, the link is its scope."""
NVLINK_5 = {
    "speed": 164,
    "receive": 208,
    "malformed_packet": 206,
    "buffer_overrun": 207,
    "link_recovery": 215,
    "link_recovery_failed": 214,
    "effective": 219,
    "symbol": 221,
}
P2P_STATUS = {
    0: "ok",
    1: "chipset not supported",
    2: "GPU not supported",
    3: "topology not supported",
    4: "disabled by registry key",
    5: "not supported",
    6: "unknown",
}
P2P_BY_NVLINK = 2
"""The only capability that a check needs: a call takes 2 ms, and eight GPUs are 28 pairs."""


def _link_states(device):
    found = {"active": [], "inactive": []}
    for link in range(NVLINK_LIMIT):
        try:
            state = device.call("nvmlDeviceGetNvLinkState", link)
        except device.library.NVMLError as problem:
            if problem.value == nvml.INVALID_ARGUMENT or (problem.value in nvml.ABSENT and link):
                break
            raise
        found["active" if state else "inactive"].append(link)
    return found


def state(device):
    found = _link_states(device)
    return read.value(found) if found["active"] or found["inactive"] else read.absent(nvml.NOT_SUPPORTED)


def version(device):
    active = _link_states(device)["active"]
    if not active:
        return read.absent("no active NVLink")
    number = device.call("nvmlDeviceGetNvLinkVersion", active[0])
    return read.value(NVLINK_VERSIONS.get(number, "unknown ({})".format(number)))


def remote(device):
    """Count links by the device at the other end: {"switch": 18}."""
    found = {}
    for link in _link_states(device)["active"]:
        number = device.call("nvmlDeviceGetNvLinkRemoteDeviceType", link)
        kind = NVLINK_REMOTES.get(number, "unknown ({})".format(number))
        found[kind] = found.get(kind, 0) + 1
    return read.value(found) if found else read.absent("no active NVLink")


def _link_fields(device):
    """Return (what, link) → (field, scope) for the GPU's generation."""
    active = _link_states(device)["active"]
    generation = device.call("nvmlDeviceGetArchitecture")
    if generation < HOPPER:
        return {
            (what, link): (numbers[link // 6] + link % 6, 0)
            for what, numbers in NVLINK_BY_LINK.items()
            for link in active
            if link < 12
        }
    fields = NVLINK_5 if generation >= BLACKWELL else NVLINK_BY_SCOPE
    return {(what, link): (number, link) for what, number in fields.items() for link in active}


def _link_values(device):
    asked = _link_fields(device)
    if not asked:
        return {}
    by_link = sorted(
        asked, key=lambda each: (each[1], each[0])
    )  # NVML asks a link once, as long as it comes in one row
    got = device.fields(tuple(asked[each] for each in by_link))
    return {each: got[field] for each, field in asked.items()}


def speed(device):
    """Count active links by MB/s in one direction: {"26562": 18}."""
    speeds = [value for (what, _), value in sorted(_link_values(device).items()) if what == "speed"]
    return _or_problem(speeds, lambda known: {str(speed): known.count(speed) for speed in sorted(set(known))})


def errors(device):
    """Return error counts by kind and link, without zeros: {"replay": {"3": 12}, "recovery": {}}."""
    counts = {each: value for each, value in _link_values(device).items() if each[0] != "speed"}

    def folded(_):
        kinds = sorted({what for (what, _), value in counts.items() if value is not None})
        return {
            kind: {str(link): value for (what, link), value in sorted(counts.items()) if what == kind and value}
            for kind in kinds
        }

    return _or_problem(list(counts.values()), folded)


def _or_problem(values, make):
    known = [value for value in values if value is not None]
    if not known:
        return read.absent(nvml.NOT_SUPPORTED if values else "no active NVLink")
    problems = [value for value in known if not isinstance(value, (int, float))]
    return read.unread(problems[0]) if problems else read.value(make(known))


def fabric(device):
    info = device.fabric()
    if info.state not in FABRIC_STATES:
        return read.absent(nvml.NOT_SUPPORTED)
    mask = getattr(info, "healthMask", 0)
    health = {
        name: words[mask >> shift & width]
        for name, shift, width, words in FABRIC_HEALTH
        if mask >> shift & width in words
    }
    status = "success" if info.status == 0 else nvml.explain(device.library.NVMLError(info.status))
    return read.value(
        {
            "state": FABRIC_STATES[info.state],
            "status": status,
            "clique_id": info.cliqueId,
            "cluster_uuid": nvml.uuid_text(info.clusterUuid),
            "health": health,
            "summary": FABRIC_SUMMARY.get(getattr(info, "healthSummary", 0)),
        }
    )


def p2p(devices):
    """Return by pair whether two GPUs reach each other over NVLink: {"GPU0-GPU1": {"nvlink": "ok"}}."""
    return read.each(
        {
            "{}-{}".format(one.name, other.name): one.fact(lambda device, other=other: _of_pair(device, other))
            for at, one in enumerate(devices)
            for other in devices[at + 1 :]
        }
    )


def _of_pair(device, other):
    status = device.call("nvmlDeviceGetP2PStatus", other, P2P_BY_NVLINK)
    return read.value({"nvlink": P2P_STATUS.get(status, "unknown")})
