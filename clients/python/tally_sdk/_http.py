"""One request and its answer. Follows no redirects, bounds answers, and sends a credential only where it belongs."""

import functools
import http.client
import io
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from typing import Any, Dict, List, Mapping, Optional

from .errors import (
    AUTHENTICATION_FAILED,
    AuthenticationError,
    PermissionDeniedError,
    ProtocolError,
    RequestError,
    UnreachableError,
)
from ._text import printable
from ._urls import is_plain

# the registry ends each of its own answers after 30 s
ANSWER_TIMEOUT_S = 35.0
# a page has at most 1,000 items, and S3 allows an object about 8 kB of key, metadata and tags
_ANSWER_BYTES_MAX = 64 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024

_openers: Dict[bool, urllib.request.OpenerDirector] = {}


class Answer:
    """The status, the headers, and the body as JSON (None if there is none)."""

    def __init__(self, status: int, headers: Mapping[str, str], body: object, what: str) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.what = what

    @property
    def code(self) -> Optional[str]:
        """The problem document's code."""
        code = self.body.get("code") if isinstance(self.body, dict) else None
        return code if isinstance(code, str) else None

    def checked(self) -> "Answer":
        """Returns this answer, or raises the error that it is."""
        if 200 <= self.status < 300:
            return self
        if 300 <= self.status < 400:
            raise ProtocolError(f"{self.what} was answered with a redirect, which this package does not follow: check the address")
        if self.status == 401:
            raise AuthenticationError(AUTHENTICATION_FAILED)
        raise self._error()

    def _error(self) -> Exception:
        body = self.body if isinstance(self.body, dict) else {}
        detail, code, advice = body.get("detail"), body.get("code"), body.get("advice")
        if not isinstance(detail, str) or not isinstance(code, str):
            return ProtocolError(f"{self.what} was answered with {self.status} and no problem document: check the address")
        kind = PermissionDeniedError if self.status == 403 else RequestError
        shown = printable(advice) if isinstance(advice, str) else None
        return kind(f"{printable(detail)} ({printable(code)})", status=self.status, code=code, advice=shown)


def send(
    method: str,
    url: str,
    *,
    bearer: Optional[str] = None,
    body: Optional[Mapping[str, object]] = None,
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> Answer:
    """Sends one request. `bearer` and `body` appear in no error. Raises UnreachableError and ProtocolError."""
    # the query may name keys of objects: errors name the path only
    address, _, _ = url.partition("?")
    what = f"{method} {address}"
    request = urllib.request.Request(url, method=method, headers={"Accept": "application/json", "User-Agent": "tally-sdk-python"})
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    if bearer is not None:
        request.add_unredirected_header("Authorization", f"Bearer {bearer}")
    try:
        with _opener_for(url).open(request, timeout=timeout_s) as response:
            return Answer(response.status, response.headers, _json_of(_read(response, what)), what)
    except urllib.error.URLError as error:
        raise UnreachableError(f"{what} got no answer: {printable(str(error.reason))}") from None
    except (OSError, http.client.HTTPException) as error:
        raise UnreachableError(f"{what} got no answer: {printable(str(error) or type(error).__name__)}") from None


class _Bytes(io.RawIOBase):
    """What a socket receives until one deadline for all of it: a socket's own timeout restarts with each byte."""

    def __init__(self, sock: socket.socket, file: Any, deadline_s: float) -> None:
        self._sock = sock
        # keeps the socket open after its connection has let go of it
        self._file = file
        self._deadline_s = deadline_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the answer did not end in time")
        self._sock.settimeout(left_s)
        return self._sock.recv_into(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline_s: float, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp = io.BufferedReader(_Bytes(sock, self.fp, deadline_s))


class _PlainConnection(http.client.HTTPConnection):
    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.response_class = _response_until(self.timeout)


class _SecureConnection(http.client.HTTPSConnection):
    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.response_class = _response_until(self.timeout)


def _response_until(timeout_s: Optional[float]) -> Any:
    """A class of answers that must end within this time from now."""
    return functools.partial(_Response, deadline_s=time.monotonic() + (timeout_s or ANSWER_TIMEOUT_S))


class _PlainHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_PlainConnection, req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._given = context

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_SecureConnection, req, context=self._given)


def _opener_for(url: str) -> urllib.request.OpenerDirector:
    """An opener without a handler that follows redirects or turns statuses into errors."""
    plain = is_plain(url)
    if plain not in _openers:
        opener = urllib.request.OpenerDirector()
        # a proxy would read what is sent without encryption to this machine; to others it forwards what is encrypted
        opener.add_handler(urllib.request.ProxyHandler({} if plain else None))
        opener.add_handler(_PlainHandler() if plain else _SecureHandler(ssl.create_default_context()))
        _openers[plain] = opener
    return _openers[plain]


def _read(response: http.client.HTTPResponse, what: str) -> bytes:
    parts: List[bytes] = []
    size = 0
    while True:
        part = response.read1(_CHUNK_BYTES)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > _ANSWER_BYTES_MAX:
            raise ProtocolError(f"{what} was answered with more than {_ANSWER_BYTES_MAX} bytes: check the address")


def _json_of(content: bytes) -> object:
    try:
        parsed: object = json.loads(content)
        return parsed
    except (ValueError, RecursionError):
        return None
