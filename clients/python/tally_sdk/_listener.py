"""
The listener on 127.0.0.1 from which a login begins, and to which the browser returns at its end.

The address that a browser is opened with is an argument of a process, which every user of this machine can read. It is
therefore an address here that leads to the registry once, and not the one with the secret parts of the login.
"""

import hmac
import html
import queue
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Callable, Dict, Optional, Tuple
from urllib.parse import parse_qs, urlsplit

from .errors import LoginError

# a browser opens connections that it never uses
_CONNECTION_TIMEOUT_S = 10
# the page is short, and the browser is on this machine
_PAGE_TIMEOUT_S = 10.0
_POLL_S = 0.2

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>Tally</title></head>
<body><h1>{title}</h1><p>{text}</p></body></html>
"""

Parameters = Dict[str, str]
_TWICE = "this login's address was opened twice, maybe by another user of this machine, so Tally ended the login"


class _Return:
    """One return of the browser, which is waiting for a page."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.page: "queue.Queue[Tuple[str, str]]" = queue.Queue(1)
        self.shown = threading.Event()


class _Start:
    """The way to the registry, which works once. A second visit ends the login: the first may have been somebody else's."""

    def __init__(self) -> None:
        self.path = f"/start/{secrets.token_hex(16)}"
        self.target: Optional[str] = None
        self.is_abused = False
        self._visits = 0
        self._lock = threading.Lock()

    def visit(self) -> Optional[str]:
        """The address to go to; None if it was given already."""
        with self._lock:
            self._visits += 1
            self.is_abused = self._visits > 1
            return None if self.is_abused else self.target


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # that of HTTPServer asks the DNS for the name of this machine, which can take long and is not used
        TCPServer.server_bind(self)


class Listener:
    """Listens from its creation until close(). `address` is the redirect_uri, and `start_address` is the one to open."""

    def __init__(self, state: str) -> None:
        self._returns: "queue.Queue[_Return]" = queue.Queue(1)
        self._start = _Start()
        self._server = _Server(("127.0.0.1", 0), _handler_for(state, self._returns, self._start))
        origin = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.address = f"{origin}/callback"
        self.start_address = f"{origin}{self._start.path}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def lead_to(self, address: str) -> None:
        """Where the start address leads."""
        self._start.target = address

    def wait(self, timeout_s: float, finish: Callable[[Parameters], str], is_hopeless: Callable[[], bool]) -> bool:
        """
        Waits for the browser, runs `finish` with what it brings, and shows in the browser how that ended: as whom, as
        `finish` returns it, or why not. Returns False once `is_hopeless`. Raises LoginError if the browser does not
        return in time or the start address was opened twice, and what `finish` raises.
        """
        returned = self._first(time.monotonic() + timeout_s, is_hopeless)
        if returned is None:
            return False
        try:
            who = finish(returned.parameters)
            returned.page.put((f"You are logged in as {who}", "You can close this window."))
            return True
        except Exception as error:
            returned.page.put(("The login failed", str(error)))
            raise
        finally:
            returned.shown.wait(_PAGE_TIMEOUT_S)

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def _first(self, deadline_s: float, is_hopeless: Callable[[], bool]) -> Optional[_Return]:
        while time.monotonic() < deadline_s:
            if self._start.is_abused:
                raise LoginError(f"{_TWICE}: call login() again")
            try:
                # short waits: Windows delivers Ctrl-C between them only
                return self._returns.get(timeout=_POLL_S)
            except queue.Empty:
                if is_hopeless():
                    return None
        raise LoginError("the browser did not return in time: call login() again")


def _handler_for(state: str, returns: "queue.Queue[_Return]", start: _Start) -> Any:
    class Handler(BaseHTTPRequestHandler):
        timeout = _CONNECTION_TIMEOUT_S
        server_version = "Tally"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path == start.path and self.headers.get("Host") == self._host():
                self._lead()
                return
            parameters = self._parameters()
            if parameters is None:
                self._show(404, "Nothing is here", "This address belongs to a login that is under way.")
                return
            returned = _Return(parameters)
            try:
                returns.put_nowait(returned)
            except queue.Full:
                self._show(409, "Nothing was done", "This login has been answered already.")
                return
            title, text = returned.page.get()
            try:
                self._show(200, title, text)
            finally:
                returned.shown.set()

        def _lead(self) -> None:
            target = start.visit()
            if target is None:
                self._show(409, "The login has ended", f"{_TWICE}. Begin it again.")
                return
            self.send_response(303)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Connection", "close")
            self.end_headers()

        def _host(self) -> str:
            return f"127.0.0.1:{self.server.server_address[1]}"  # type: ignore[index]

        def _parameters(self) -> Optional[Parameters]:
            """What the registry sends; None for a request that cannot come from this login."""
            url = urlsplit(self.path)
            # another name for this machine: a page of another site that had its name resolved to 127.0.0.1
            if url.path != "/callback" or start.is_abused or self.headers.get("Host") != self._host():
                return None
            values = parse_qs(url.query, max_num_fields=20)
            parameters = {name: each[0] for name, each in values.items() if len(each) == 1}
            # a wrong state is another login's, or an attack: this login continues to wait
            is_ours = hmac.compare_digest(parameters.get("state", "").encode(), state.encode())
            return parameters if is_ours else None

        def _show(self, status: int, title: str, text: str) -> None:
            page = _PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.send_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            # the line would hold the code
            pass

    return Handler
