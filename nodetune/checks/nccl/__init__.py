"""Problems in a node's NCCL settings. Pure: settings and facts of the host in, {"file:line NAME": problem} out.

A setting is a mapping with name, value, file, line, raw and scope, as the `nccl` collector gives it. Checks call:

    _settings    malformed                            lines of an nccl.conf that NCCL does not read as intended
                 repeated                             which of several lines wins
                 problems                             a test of their own, applied to every setting that takes effect
    _names       unknown, without_effect, obsolete    names that are unknown, have no effect here, or are deprecated
    _values      invalid                              values that NCCL does not read as intended
    _effects     noisy, lost_paths, unsafe, forced,   values that NCCL reads as intended and that do harm
                 per_job, against_efa
    _interfaces  wrong                                NCCL_SOCKET_IFNAME and similar, compared with the links of the host
    _adapters    wrong                                NCCL_IB_HCA and similar, compared with its RDMA ports

Below these: `_table` is the table of names and values (data/nccl_env.yml) with the order of releases, `_reading` reads
numbers as C does, and selections such as `^=eth0,lo`.
"""
