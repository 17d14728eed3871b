"""Tokens of an interactive login: from a code, from a refresh token, and their end."""

import re
import time
from typing import Mapping

from ._http import Answer, send
from ._store import SessionCredential
from .errors import ProtocolError

# shorter than a stale lock, see _files
_TIMEOUT_S = 15.0
_TOKEN = re.compile(r"[\x21-\x7e]{1,1024}")


def request_tokens(registry_url: str, grant: Mapping[str, object]) -> Answer:
    """Asks for tokens. The answer may be an error."""
    return send("POST", f"{registry_url}/login/token", body=grant, timeout_s=_TIMEOUT_S)


def is_invalid_grant(answer: Answer) -> bool:
    """Whether the code or the refresh token was refused."""
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    return answer.code == "login.invalid-grant" or error == "invalid_grant"


def session_of(answer: Answer, *, registry_url: str, catalog_url: str, login: str) -> SessionCredential:
    """The session that an answer with tokens gives. `login` names the login that they belong to."""
    body = answer.checked().body
    values = body if isinstance(body, dict) else {}
    access, refresh, seconds = values.get("access_token"), values.get("refresh_token"), values.get("expires_in")
    if not _is_token(access) or not _is_token(refresh) or not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise ProtocolError(f"{answer.what} was answered without tokens: check that the version of the registry fits this package")
    return SessionCredential(registry_url, catalog_url, login, str(access), str(refresh), time.time() + seconds)


def end_session(session: SessionCredential) -> Answer:
    """Ends the session at the registry. The answer may be an error."""
    return send("POST", f"{session.registry_url}/login/logout", bearer=session.access_token, timeout_s=_TIMEOUT_S)


def _is_token(value: object) -> bool:
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None
