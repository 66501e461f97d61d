"""python -m tests.support.packages.serve OUT [--port 8000]: serves what build.py made, to this computer and its machines of tests/machines.

QEMU's own network shows a machine this computer as 10.0.2.2; nothing else can reach it.
"""

import argparse
import contextlib
import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MACHINES_SEE = "10.0.2.2"


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass


class Server:
    """`with Server(OUT) as server:`; `stop()` and `start()` play a repository that cannot be reached for a while."""

    def __init__(self, folder: Path, port: int = 0):
        self._handler = functools.partial(_Quiet, directory=str(folder))
        self.port = port
        self._http: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """As this computer sees it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def machines_url(self) -> str:
        """As a machine of tests/machines sees it."""
        return f"http://{MACHINES_SEE}:{self.port}"

    def start(self) -> "Server":
        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        if self._http:
            self._http.shutdown()
            self._http.server_close()
        self._http = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_) -> None:
        self.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.packages.serve", description="Serves the repositories."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    told = parser.parse_args()
    with Server(told.folder, told.port) as server:
        print(f"{server.url}, on a machine {server.machines_url}; end with Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
