"""NCCL's RAS service as src/ras/client_support.cc speaks it: commands in lines of any case, one status a connection."""

import socket
import threading
from contextlib import contextmanager

RANK = """        {{
          "rank": {rank},
          "host": "{host}",
          "pid": {pid},
          "cuda_dev": {gpu},
          "nvml_dev": {gpu},
          "status": {{
            "init_state": {init},
            "async_error": {error},
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": false
          }},
          "collective_counts": {{
            "Broadcast": 0,
            "Reduce": 0,
            "AllGather": {gathers},
            "ReduceScatter": 0,
            "AllReduce": {reduces}
          }}
        }}"""
MISSING = """        {{
          "rank": {rank},
          "host": "{host}",
          "pid": {pid},
          "cuda_dev": {gpu},
          "nvml_dev": {gpu},
          "status": {{
            "unresponsive": {silent},
            "considered_dead": {dead}
          }}
        }}"""
ANSWER = """{{
  "nccl_version": "2.30.7",
  "cuda_runtime_version": 13000,
  "cuda_driver_version": 13000,
  "timestamp": "2026-11-27 04:00:00",
  "communicators_count": 1,
  "communicators": [
    {{
      "hash": "0xae94423cfbb2ef4a",
      "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e",
      "size": {size},
      "ranks_count": {count},
      "missing_ranks_count": {missing},
      "ranks": [
{ranks}
      ],
      "missing_ranks": [
{lost}
      ]
    }}
  ],
  "ras": {{
    "collection_time_sec": 0.010,
    "timeouts_count": {timeouts}
  }}
}}
"""


def place(rank):
    return {"rank": rank, "host": f"10.0.0.{rank // 8 + 1}", "pid": 1000 + rank, "gpu": rank % 8}


def answer(reduces, gathers=(), lost=(), errors=(), timeouts=0, dead=False):
    """JSON of one communicator. `reduces`: how many all-reduces each rank launched; `lost`: ranks that do not answer."""
    ranks = [
        RANK.format(
            **place(rank), init=0, error=dict(errors).get(rank, 0), gathers=dict(gathers).get(rank, 4), reduces=count
        )
        for rank, count in enumerate(reduces)
        if rank not in lost
    ]
    missing = [MISSING.format(**place(rank), silent="true", dead=str(dead).lower()) for rank in lost]
    return ANSWER.format(
        size=len(reduces),
        count=len(ranks),
        missing=len(missing),
        ranks=",\n".join(ranks),
        lost=",\n".join(missing),
        timeouts=timeouts,
    )


class Service:
    """Answers each connection with the next of `answers`, the last one again and again."""

    def __init__(self, answers, json=True):
        self._answers, self._json, self.heard = list(answers), json, []
        self._socket = socket.create_server(("127.0.0.1", 0), reuse_port=True)
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client, client.makefile("rwb") as stream:
                self._client(stream)

    def _client(self, stream):
        for line in stream:
            command = line.decode().strip()
            self.heard.append(command)
            lowered = command.lower()
            if lowered in ("status", "verbose status"):
                stream.write((self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]).encode())
                stream.flush()
                return
            stream.write(self._reply(lowered, command).encode())
            stream.flush()

    def _reply(self, lowered, command):
        if lowered.startswith("client protocol "):
            return "SERVER PROTOCOL 2\n"
        if lowered.startswith("timeout ") or (lowered.startswith("set format ") and self._json):
            return "OK\n"
        return f"ERROR: Unknown command {command}\n"

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@contextmanager
def serving(*answers, json=True):
    service = Service(answers, json)
    try:
        yield service
    finally:
        service.close()
