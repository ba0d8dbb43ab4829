"""A proxy between a client and a server that fails as networks and busy stores do, and counts what goes through it."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

#: What happens to a request: an answer with a status; the connection ends before the server sees it, or instead of the
#: server's answer; or in the middle of the answer's body.
Fault = Literal["500", "503", "429", "lost request", "lost answer", "cut"]


@dataclass
class Faults:
    """What the proxy does and has seen."""

    every: int = 0  # one in so many requests fails; 0 for none
    kinds: tuple[Fault, ...] = ("500", "503", "lost request", "lost answer", "cut")  # how they fail, by turns
    delay: float = 0  # the seconds before each answer
    #: what is done with a request before it is sent on: returns an answer instead, a status and a body
    first: Callable[[str, str], tuple[int, bytes] | None] = lambda method, path: None
    requests: list[tuple[str, str]] = field(default_factory=list)  # the methods and paths that came
    sent: int = 0  # the bytes of answers' bodies
    failed: int = 0  # the number of requests that failed
    lock: Any = field(default_factory=threading.Lock)

    def next(self, method: str, path: str) -> Fault | None:
        """Return how a request fails, if it does."""
        with self.lock:
            self.requests.append((method, path))
            if not self.every or len(self.requests) % self.every:
                return None
            self.failed += 1
            return self.kinds[self.failed % len(self.kinds)]


@contextmanager
def proxied(port: int) -> Iterator[tuple[int, Faults]]:
    """Yield the port of a proxy to ``port``, and what decides about its faults."""
    faults = Faults()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def handle_one_request(self) -> None:
            with suppress(OSError):
                super().handle_one_request()
                return
            self.close_connection = True

        def do(self) -> None:
            if self.headers.get("Expect") == "100-continue":
                self.wfile.write(b"")
            body = _body(self.rfile, self.headers)
            fault = faults.next(self.command, self.path)
            time.sleep(faults.delay)
            instead = faults.first(self.command, self.path)
            if instead is not None:
                self.answer(instead[0], {"Content-Type": "application/xml"}, instead[1])
            elif fault in ("500", "503", "429"):
                self.answer(int(fault), {}, b"")
            elif fault == "lost request":
                self.end()
            else:
                status, headers, data = self.forward(body)
                if fault == "lost answer":
                    self.end()
                else:
                    self.answer(status, headers, data, cut=fault == "cut")

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do  # noqa: N815

        def forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            try:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in ("transfer-encoding", "content-length", "expect", "connection"):
                        connection.putheader(name, value)
                connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                found = connection.getresponse()
                return found.status, dict(found.getheaders()), found.read()
            finally:
                connection.close()

        def answer(self, status: int, headers: dict[str, str], data: bytes, *, cut: bool = False) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("transfer-encoding", "content-length", "connection", "keep-alive"):
                    self.send_header(name, value)
            said = {name.lower(): value for name, value in headers.items()}.get("content-length", str(len(data)))
            length = said if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length)
            self.end_headers()
            sent = data[: len(data) // 2] if cut else data
            # Counted first: who has the answer may ask at once how much was sent.
            with faults.lock:
                faults.sent += len(sent)
            if self.command != "HEAD":
                self.wfile.write(sent)
            if cut and len(data) > 1:
                self.end()

        def end(self) -> None:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        # Threads that wait for clients' next requests end with the process.
        server.block_on_close = False
        # So often it looks whether it shall end, for which each test waits.
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.server_port, faults
        finally:
            server.shutdown()
            thread.join()


def _body(file: Any, headers: Any) -> bytes:
    if headers.get("Transfer-Encoding", "").lower() != "chunked":
        found: bytes = file.read(int(headers.get("Content-Length") or 0))
        return found
    pieces = []
    while size := int(file.readline().split(b";")[0], 16):
        pieces.append(file.read(size))
        file.readline()
    while file.readline().strip():
        pass
    return b"".join(pieces)
