"""The token of an interactive login: from a code, and its end."""

import re
import time
from typing import Mapping

from ._http import Answer, send
from ._store import Config, SessionCredential
from .errors import ProtocolError

_TIMEOUT_S = 15.0
_TOKEN = re.compile(r"[\x21-\x7e]{1,1024}")


def request_token(registry_url: str, code: Mapping[str, str]) -> Answer:
    """Exchanges a code, with its verifier and redirect_uri, for a token. The answer may be an error."""
    body = {"grant_type": "authorization_code", **code}
    return send("POST", f"{registry_url}/login/token", body=body, timeout_s=_TIMEOUT_S)


def is_invalid_grant(answer: Answer) -> bool:
    """Whether the code was refused."""
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    return answer.code == "login.invalid-grant" or error == "invalid_grant"


def session_of(answer: Answer, config: Config) -> SessionCredential:
    """The session from an answer with a token."""
    body = answer.checked().body
    values = body if isinstance(body, dict) else {}
    token, seconds = values.get("access_token"), values.get("expires_in")
    if not _is_token(token) or not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise ProtocolError(f"the registry answered {answer.what} without a token: check that its version fits this package")
    return SessionCredential(config.registry_url, config.catalog_url, str(token), time.time() + seconds)


def end_session(session: SessionCredential) -> Answer:
    """Ends the session at the registry. The answer may be an error."""
    return send("POST", f"{session.registry_url}/login/logout", bearer=session.token, timeout_s=_TIMEOUT_S)


def _is_token(value: object) -> bool:
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None
