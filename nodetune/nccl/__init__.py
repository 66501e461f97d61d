"""What is wrong with a node's NCCL settings. Pure: settings and facts of the host in, {"file:line NAME": problem} out.

A setting is a mapping with name, value, file, line, raw and scope, as the `nccl` collector gives it. What checks call:

    syntax      malformed                            lines of an nccl.conf that do not mean what they look like
    names       unknown, without_effect, obsolete    names that nothing reads, or not here, or not for long
    values      invalid                              values that are read as something else than they look like
    effects     noisy, lost_paths, unsafe, forced,   values that are read well and do harm
                per_job, against_efa
    precedence  repeated                             which of several lines wins
    interfaces  wrong                                NCCL_SOCKET_IFNAME and its like against the links of the host
    adapters    wrong                                NCCL_IB_HCA and its like against its RDMA ports

Beneath them, and for a check with a judgement of its own: `judging.problems` asks one question of every setting that
takes effect, `table` holds all that is known (data/nccl_env.yml), `reading` reads numbers as C does, `releases` tells
older from newer, `selections` reads a choice such as `^=eth0,lo`, `settings` says what a setting is.
"""
