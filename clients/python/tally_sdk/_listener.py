"""The listener on 127.0.0.1 to which the browser returns at the end of a login."""

import hmac
import html
import queue
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


class _Return:
    """One return of the browser, which waits for its page."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.page: "queue.Queue[Tuple[str, str]]" = queue.Queue(1)
        self.shown = threading.Event()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # that of HTTPServer asks the DNS for the name of this machine, which can take long and is not used
        TCPServer.server_bind(self)


class Listener:
    """Listens from its creation until close(). `address` is the redirect_uri."""

    def __init__(self, state: str) -> None:
        self._returns: "queue.Queue[_Return]" = queue.Queue(1)
        self._server = _Server(("127.0.0.1", 0), _handler_for(state, self._returns))
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/callback"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def wait(self, timeout_s: float, finish: Callable[[Parameters], None], is_hopeless: Callable[[], bool]) -> bool:
        """
        Waits for the browser, runs `finish` with what it brings, and shows in the browser how that ended. Returns False
        once `is_hopeless`. Raises LoginError if the browser does not return in time, and what `finish` raises.
        """
        returned = self._first(time.monotonic() + timeout_s, is_hopeless)
        if returned is None:
            return False
        try:
            finish(returned.parameters)
            returned.page.put(("You are logged in", "You can close this window."))
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
            try:
                # short waits: Windows delivers Ctrl-C between them only
                return self._returns.get(timeout=_POLL_S)
            except queue.Empty:
                if is_hopeless():
                    return None
        raise LoginError("the browser did not return in time: call login() again")


def _handler_for(state: str, returns: "queue.Queue[_Return]") -> Any:
    class Handler(BaseHTTPRequestHandler):
        timeout = _CONNECTION_TIMEOUT_S
        server_version = "Tally"
        sys_version = ""

        def do_GET(self) -> None:
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

        def _parameters(self) -> Optional[Parameters]:
            """What the registry sends; None for a request that cannot come from this login."""
            url = urlsplit(self.path)
            # another name for this machine: a page of another site that had its name resolved to 127.0.0.1
            host = f"127.0.0.1:{self.server.server_address[1]}"  # type: ignore[index]
            if url.path != "/callback" or self.headers.get("Host") != host:
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
