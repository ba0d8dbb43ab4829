"""A server in place of a store, which answers as a test says: with any status, head and body, and without end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: What is sent: the status, the head, and the pieces of the body, which may have no end.
Answer = tuple[int, dict[str, str], Iterable[bytes]]


@dataclass
class Lies:
    """What the server answers, and what it was asked."""

    #: given the number of the request, its method, its path and the range that it asks for
    answer: Callable[[int, str, str, str], Answer] = lambda number, method, path, wanted: (404, {}, [])
    requests: int = 0
    sent: int = 0  # the bytes of bodies that the client, or the system between, has taken
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def lying_store() -> Iterator[tuple[int, Lies]]:
    """Yield the port of a server, and what it answers."""
    lies = Lies()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do(self) -> None:
            # A body that nobody reads may not stand before the next request.
            self.close_connection = True
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lies.lock:
                lies.requests += 1
                number = lies.requests
            wanted = self.headers.get("x-ms-range") or self.headers.get("Range") or ""
            status, head, pieces = lies.answer(number, self.command, self.path, wanted)
            self.send_response_only(status)
            for name, value in head.items():
                self.send_header(name, value)
            if isinstance(pieces, list) and "Content-Length" not in head:
                self.send_header("Content-Length", str(sum(map(len, pieces))))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command == "HEAD":
                return
            with suppress(OSError):
                for piece in pieces:
                    if lies.ended.is_set():
                        break
                    self.wfile.write(piece)
                    lies.sent += len(piece)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.server_port, lies
        finally:
            lies.ended.set()
            server.shutdown()
            thread.join()
