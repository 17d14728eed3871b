"""
The interactive login (OAuth with PKCE): by a browser on this machine, which returns to a listener on 127.0.0.1; or by a
code that a browser anywhere shows, which is pasted here.
"""

import base64
import hashlib
import os
import re
import secrets
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from typing import List, Mapping, Optional
from urllib.parse import urlencode

from . import _tokens
from ._client import client
from ._http import send
from ._listener import Listener, Parameters
from ._platform import fetch_config
from ._store import Config
from ._text import printable
from .errors import LoginError, TallyError

# the registry keeps a login that is under way for 10 min
_LOGIN_TIMEOUT_S = 600.0
_MACHINE_LENGTH_MAX = 64
# the browser of such a session is on another machine, to which 127.0.0.1 is itself
_REMOTE = ("SSH_CONNECTION", "SSH_TTY", "JUPYTERHUB_USER", "COLAB_RELEASE_TAG", "SAGEMAKER_INTERNAL_IMAGE_URI", "CODESPACES")


@dataclass(frozen=True)
class _Attempt:
    config: Config
    state: str
    verifier: str

    def address(self, others: Mapping[str, str]) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        query = {
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "state": self.state,
            "machine": _machine(),
            **others,
        }
        return f"{self.config.registry_url}/login/authorize?{urlencode(query)}"

    def redeem(self, code: str, redirect_uri: Optional[str]) -> str:
        """Exchanges the code for a session, and uses and stores it. Returns the e-mail address of the person who has logged in."""
        grant = {"code": code, "code_verifier": self.verifier}
        if redirect_uri is not None:
            grant["redirect_uri"] = redirect_uri
        answer = _tokens.request_token(self.config.registry_url, grant)
        if _tokens.is_invalid_grant(answer):
            raise LoginError("the registry refused the code: it is wrong, has already been used, or is older than 60 s; call login() again")
        session = _tokens.session_of(answer, self.config)
        try:
            # a login that nobody can name is not used: another person may have answered it
            user = client.caller_of(session).user
            if user is None:
                raise LoginError(f"{self.config.registry_url} does not say who has logged in")
            client.keep_login(session, self.config)
        except BaseException:
            # a session that is not used must not stay alive
            with suppress(TallyError):
                _tokens.end_session(session)
            raise
        # an address that is not verified may be that of another person
        return printable(user.email) + (" (not verified)" if user.email_verified is False else "")


def login(browser: Optional[bool]) -> None:
    """Logs in. `browser`: whether this machine can open one; None: find out."""
    config = fetch_config(client.config().catalog_url)
    _require_logins(config)
    attempt = _Attempt(config, state=secrets.token_urlsafe(32), verifier=secrets.token_urlsafe(64))
    if browser is None:
        browser = _has_browser()
    who = _by_browser(attempt) if browser else None
    _say(f"You are logged in as {who or _by_code(attempt)}.")


def _require_logins(config: Config) -> None:
    """A registry without an issuer accepts callers without a credential, and none of its pages leads back here."""
    session = send("GET", f"{config.registry_url}/v1/session").body
    if isinstance(session, dict) and session.get("kind") == "local":
        raise LoginError(f"{config.registry_url} has no login: programs on its machine need none")


def _by_browser(attempt: _Attempt) -> Optional[str]:
    """Logs in with a browser, and returns who has logged in; None if there is no browser here."""
    try:
        listener = Listener(attempt.state)
    except OSError:
        return None
    who: List[str] = []

    def finish(parameters: Parameters) -> str:
        who.append(_finish(attempt, parameters, listener.address))
        return who[0]

    try:
        listener.lead_to(attempt.address({"redirect_uri": listener.address}))
        address = listener.start_address
        _say(f"Log in in the browser. If it does not open, open this address on this machine:\n{address}")
        opening = _Opening(address)
        return who[0] if listener.wait(_LOGIN_TIMEOUT_S, finish, opening.has_failed) else None
    finally:
        listener.close()


class _Opening:
    """Opens the browser in a thread, because some browsers return only when they are closed."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opened = True
        threading.Thread(target=self._open, daemon=True).start()

    def has_failed(self) -> bool:
        return not self._opened

    def _open(self) -> None:
        try:
            self._opened = webbrowser.open(self._address)
        except (OSError, webbrowser.Error):
            self._opened = False


def _finish(attempt: _Attempt, parameters: Parameters, redirect_uri: str) -> str:
    if parameters.get("iss") != attempt.config.registry_url:
        raise LoginError(f"a server other than {attempt.config.registry_url} answered the login, so nothing was sent to it")
    if "error" in parameters:
        reason = parameters.get("error_description", parameters["error"])
        raise LoginError(f"the login was refused: {printable(reason)}")
    if "code" not in parameters:
        raise LoginError("the browser returned without a code: call login() again")
    return attempt.redeem(parameters["code"], redirect_uri)


def _by_code(attempt: _Attempt) -> str:
    _say(f"Open this address in a browser, and paste the code that it shows:\n{attempt.address({'no_browser': 'true'})}")
    try:
        code = input("Code: ")
    except EOFError:
        raise LoginError("nobody can paste a code here: use login_with_api_key() for programs that run without a person") from None
    # pages and terminals add spaces and line ends
    return attempt.redeem(re.sub(r"\s", "", code), None)


def _has_browser() -> bool:
    if any(os.environ.get(name) for name in _REMOTE):
        return False
    if os.environ.get("BROWSER"):
        return True
    needs_display = sys.platform not in ("win32", "cygwin", "darwin")
    return not needs_display or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))


def _machine() -> str:
    name = "".join(each for each in socket.gethostname() if each.isprintable())
    return name[:_MACHINE_LENGTH_MAX] or "unknown"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
