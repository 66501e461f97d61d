"""Files as NCCL's Inspector writes them: a line as inspector_json.cc and json.cc make it, a file a process."""

import hashlib

LINE = (
    '{{"header":{{"id":"{id}","comm_name":"unknown","rank":{rank},"n_ranks":{ranks},"nnodes":{nodes}}},'
    '"metadata":{{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface",'
    '"dump_timestamp_us":{dumped},"hostname":"{host}","pid":{pid}}},'
    '"coll_perf":{{"coll":"{coll}","coll_sn":{sn},"coll_msg_size_bytes":{size},"coll_exec_time_us":{time},'
    '"coll_timing_source":"kernel_gpu","coll_algobw_gbs":{algobw:f},"coll_busbw_gbs":{busbw:f}{verbose}}}}}\n'
)
VERBOSE = (
    ',"event_trace_sn":{{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{{"channel_id":0,"kernel_start_sn":3,'
    '"kernel_stop_sn":5,"kernel_record_sn":4}}]}},"event_trace_ts":{{"coll_start_ts":{start},"coll_stop_ts":{start},'
    '"kernel_events":[{{"channel_id":0,"kernel_start_ts":{start},"kernel_stop_ts":{end},"kernel_record_ts":{end}}}]}}'
)
P2P = (
    '{"header":{"id":"0x1","comm_name":"unknown","rank":0,"n_ranks":2,"nnodes":1},"metadata":'
    '{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface",'
    '"dump_timestamp_us":1,"hostname":"a","pid":1},"p2p_perf":{"p2p":"Send","p2p_sn":1,"p2p_peer":1,'
    '"p2p_msg_size_bytes":8192,"p2p_exec_time_us":5,"p2p_timing_source":"kernel_gpu","p2p_algobw_gbs":1.0,'
    '"p2p_busbw_gbs":1.0}}\n'
)


def identity(name):
    """The id of a communicator: `0x` and 14 digits of its hash, as NCCL_COMM_HASH_LENGTH leaves them."""
    return "0x" + hashlib.sha256(name.encode()).hexdigest()[:14]


def line(communicator, rank, kind, call, *, verbose=False, dumped=None):
    """A line of one call: its number, its time in µs, and when it ended."""
    number, time, end = call
    member = communicator.members[rank]
    return LINE.format(
        id=identity(communicator.id),
        rank=rank,
        ranks=communicator.size,
        nodes=len({each.host for each in communicator.members.values()}),
        dumped=end if dumped is None else dumped,
        host=member.host,
        pid=member.pid,
        coll=kind.collective,
        sn=number,
        size=kind.size,
        time=time,
        algobw=kind.size / time / 1000,
        busbw=kind.size / time / 1000,
        verbose=VERBOSE.format(start=end - time, end=end) if verbose else "",
    )


def write(folder, job, **how):
    """Write the files of a job: folder/nccl-inspector-JOB/HOST-pidN.log, in the order in which the collectives ended."""
    lines = {}
    for each in job.communicators:
        for kind, calls in each.calls.items():
            for rank, of_rank in calls.items():
                rows = lines.setdefault(each.members[rank], [])
                rows += [(end, line(each, rank, kind, (sn, time, end), **how)) for sn, (time, end) in of_rank.items()]
    place = folder / f"nccl-inspector-{job.name}"
    place.mkdir(parents=True, exist_ok=True)
    for process, rows in lines.items():
        text = P2P + "".join(text for _, text in sorted(rows, key=lambda row: row[0]))
        (place / f"{process.host}-pid{process.pid}.log").write_text(text)
    return place
