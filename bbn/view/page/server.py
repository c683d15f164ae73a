"""The server of the interactive page, on the standard library's HTTP server.

It listens on the loopback address unless told otherwise and answers only pages it served itself: Host and Origin are
checked, requests must be JSON and say their length. Whatever it is sent, it answers with JSON that says what is wrong,
or closes the connection, and prints nothing. A whole request must arrive within `SECONDS`, so that a slow client
cannot hold its thread, and at most `CLIENTS` are served at a time.
"""

from __future__ import annotations

import io
import json
import re
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import urlsplit

from bbn.core.errors import BBNError
from bbn.view.page import assets

LARGEST_REQUEST = 1 << 20
SECONDS = 20.0
"""How long a request may take to arrive, and an answer to be read."""
IDLE = 60.0
"""How long a connection may wait for its next request."""
CLIENTS = 64
"""The most connections at a time."""
FILES = {
    f"/{name}": (name, assets.KINDS[name[name.rindex(".") :]])
    for name in (*assets.MODULES, assets.LIBRARY, assets.STYLE)
} | {"/": ("index.html", "text/html; charset=utf-8")}
"""What is sent as it is: path to name and kind."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"
)


class Answering(Protocol):
    """What gives the answers."""

    @property
    def layout(self) -> dict[str, Any]:
        """What the page draws."""

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may name as its host."""

    def answer(self, path: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to one question, None where there is no such path; BBNError or ValueError if it has none."""


class Server(ThreadingHTTPServer):
    """A thread for each connection, at most `CLIENTS` at a time."""

    daemon_threads = True
    request_queue_size = CLIENTS

    def __init__(self, address: tuple[str, int], explorer: Answering) -> None:
        self.explorer = explorer
        self._places = threading.BoundedSemaphore(CLIENTS)
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, or close it if there are too many."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, then make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that has gone."""


class _Arriving(io.RawIOBase):
    """What a client sends: each request must be there in whole by its deadline."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.deadline: float | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there; TimeoutError past the deadline."""
        left = IDLE if self.deadline is None else self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        count: int = self.connection.recv_into(buffer)
        if self.deadline is None:
            self.deadline = time.monotonic() + SECONDS
        return count


class Handler(BaseHTTPRequestHandler):
    """One connection, request after request."""

    server: Server
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # what cannot be understood is answered with a status too
    disable_nagle_algorithm = True  # else the body waits up to 40 ms for the headers to be acknowledged

    def setup(self) -> None:
        """Watch the time that requests take."""
        super().setup()
        self.arriving = _Arriving(self.connection)
        self.rfile = io.BufferedReader(self.arriving)

    def handle_one_request(self) -> None:
        """Serve a request; the time that the next one has begins with its first byte."""
        self.arriving.deadline = None
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def do_GET(self) -> None:
        """The page and its parts."""
        path = self._path()
        if path is None:
            return
        if self.headers.get("Content-Length", "0") != "0":
            self._refuse(HTTPStatus.BAD_REQUEST, "a GET request has no body")
        elif path == "/model":
            self._send(HTTPStatus.OK, json.dumps(self.server.explorer.layout).encode(), "application/json")
        elif path in FILES:
            name, kind = FILES[path]
            self._send(HTTPStatus.OK, assets.text(name).encode(), kind)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is no {path}")

    def do_POST(self) -> None:
        """A question."""
        path = self._path()
        if path is None:
            return
        if self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "requests must be application/json")
            return
        length = self._length()
        if length is None:
            return
        body = self.rfile.read(length)
        if len(body) < length:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the body ends after {len(body)} of {length} bytes")
            return
        try:
            request = json.loads(body)
            if not isinstance(request, dict):
                raise ValueError("a request must be a JSON object")
            told = self.server.explorer.answer(path, request)
        except (BBNError, ValueError, RecursionError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:
            fault = f"a fault of bbn: {type(error).__name__}: {error}"
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, fault)
        else:
            if told is None:
                self._refuse(HTTPStatus.NOT_FOUND, f"there is no {path}")
            else:
                self._send(HTTPStatus.OK, json.dumps(told).encode(), "application/json")

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what the standard library cannot make sense of."""
        self._refuse(HTTPStatus(code), message or HTTPStatus(code).phrase)

    def _path(self) -> str | None:
        """The path that is asked for, if the request is well formed and came from a page of this server."""
        if self.headers.defects or len(self.headers.get_all("Host", [])) != 1:
            self._refuse(HTTPStatus.BAD_REQUEST, "the headers are malformed, or there is not one Host")
            return None
        host, origin = self.headers["Host"], self.headers.get("Origin")
        hosts = self.server.explorer.hosts
        if host not in hosts or not (origin is None or origin.removeprefix("http://") in hosts):
            self._refuse(HTTPStatus.FORBIDDEN, "this server answers only its own page")
            return None
        if "Transfer-Encoding" in self.headers:
            self._refuse(
                HTTPStatus.NOT_IMPLEMENTED, "a request says its Content-Length; it is not sent in chunks"
            )
            return None
        try:
            return urlsplit(self.path).path
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the address: {error}")
            return None

    def _length(self) -> int | None:
        """The length of the body; refuses a request that does not say it, or asks too much."""
        lengths = self.headers.get_all("Content-Length", [])
        if not lengths:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a request says its Content-Length")
        elif len(lengths) > 1 or not re.fullmatch("[0-9]+", lengths[0]):
            self._refuse(HTTPStatus.BAD_REQUEST, "Content-Length must be one whole number")
        elif len(lengths[0]) > len(str(LARGEST_REQUEST)) or int(lengths[0]) > LARGEST_REQUEST:
            self._refuse(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {LARGEST_REQUEST} bytes"
            )
        else:
            return int(lengths[0])
        return None

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True
        self._send(status, json.dumps({"error": message}).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.connection.settimeout(SECONDS)
        self.request_version = self.protocol_version
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
