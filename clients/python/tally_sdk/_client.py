"""
The state of this process: which credential it uses, and requests with it.

An API key precedes an interactive login. Each is kept in memory, on disk, or both. The stored credentials are read for each
request, so that all processes use the latest login. A credential that is refused stays stored, because another process may
have replaced it at that moment; this process does not count it as a login any more.
"""

import re
import time
import warnings
from dataclasses import replace
from typing import Any, Iterator, List, Mapping, Optional, Set, Tuple, Type, TypeVar, Union
from urllib.parse import quote, urlencode

from . import _store, _tokens
from ._decode import decode
from ._http import Answer, send
from ._platform import fetch_config
from ._store import Config, Credentials, KeyCredential, SessionCredential
from ._text import printable
from ._urls import base_of, is_plain, origin_of
from ._version import check_platform
from .errors import (
    ApiKeyFormatError,
    AuthenticationError,
    ConfigurationError,
    CredentialsError,
    NotLoggedInError,
    ProtocolError,
    TallyError,
    VersionError,
)
from .records import Caller

Credential = Union[KeyCredential, SessionCredential]
# a list becomes the same parameter several times
Query = Mapping[str, Union[str, int, List[str], None]]
Record = TypeVar("Record")

# what may be in a header: anything else cannot be a key that the registry issued
_SENDABLE = re.compile(r"[\x21-\x7e]{1,512}")
_PREFIX = "qk_"


class Client:
    """The state and the requests of one process."""

    def __init__(self) -> None:
        self._key: Optional[KeyCredential] = None
        # a login, or the addresses, where the home of this user cannot be written to
        self._session: Optional[SessionCredential] = None
        self._config: Optional[Config] = None
        self._warned: Optional[str] = None
        # tokens and secrets whose last request was refused
        self._refused: Set[str] = set()

    # ── addresses ──

    def configure(self, catalog_url: str) -> Config:
        """Reads the configuration of a catalog, and stores it."""
        config = fetch_config(catalog_url)
        self._config = config
        try:
            _store.write_config(config)
        except OSError as error:
            _warn_unwritable("The address of the catalog is", error)
        return config

    def config(self) -> Config:
        """The configured catalog. Raises ConfigurationError if there is none."""
        config = self._config or _store.read_config()
        if config is None:
            raise ConfigurationError('no catalog is configured: first call configure("https://…") with its address')
        return config

    # ── credentials ──

    def credential(self) -> Optional[Credential]:
        """The credential that requests use now; None if there is none for the configured registry."""
        if self._key is not None:
            return self._key
        session = self._session
        if session is None:
            stored = _store.read_credentials()
            if stored.api_key is not None:
                return stored.api_key
            session = stored.session
        if session is None:
            return None
        config = self._config or _store.read_config()
        return session if config is None or config.registry_url == session.registry_url else None

    def is_usable(self, credential: Credential) -> bool:
        """Whether it has not expired by this machine's clock, and the registry has not refused it."""
        return not _has_ended(credential) and _token_of(credential) not in self._refused

    def use_key(self, api_key: str, registry_url: str, persist: bool) -> Caller:
        """Authenticates with an API key from now on, once the registry has accepted it."""
        secret = key_of(api_key)
        origin = origin_of(registry_url, "registry_url")
        answer = self._send(KeyCredential(origin, origin, secret), "GET", "/v1/session")
        if answer.status == 404:
            raise VersionError(f"{origin} has no API keys: version 1.67 or later is needed, and the registryUrl of config.json")
        caller = decode(Caller, answer.checked().body)
        check_platform(caller.version, origin)
        key = KeyCredential(origin, base_of(caller.catalog_url, "the catalog_url of the registry"), secret)
        self._key = key
        self._warn_expiry(key, answer)
        if persist:
            try:
                _store.write_credentials(replace(_stored_or_none(), api_key=key))
            except OSError as error:
                _warn_unwritable("The API key is", error)
        return caller

    def caller_of(self, session: SessionCredential) -> Caller:
        """Who the session is to the registry."""
        return decode(Caller, self._send(session, "GET", "/v1/session").checked().body)

    def keep_login(self, session: SessionCredential, config: Config) -> None:
        """Uses and stores a new login, instead of any API key."""
        self._key = None
        self._config = config
        self._session = None
        try:
            _store.write_config(config)
            _store.write_credentials(Credentials(session=session))
        except OSError as error:
            self._session = session
            _warn_unwritable("The login is", error)

    def forget(self) -> None:
        """Removes all credentials here, and ends the session at the registry if it can be reached."""
        # a login that could not be stored left the one before it in the file
        sessions = [self._session]
        trouble: Optional[str] = None
        try:
            # files that others can read are a reason more to end what is in them
            sessions.append(_store.read_credentials(open_allowed=True).session)
        except CredentialsError as error:
            # they are removed without being sent anywhere
            trouble = str(error)
        try:
            for session in sessions:
                trouble = self._end(session) or trouble
        finally:
            self._key = None
            self._session = None
            self._remove_stored()
        if trouble is not None:
            message = f"All credentials were removed here, but the session was not ended at the registry: {trouble}"
            warnings.warn(message, stacklevel=4)

    def _remove_stored(self) -> None:
        try:
            _store.remove_credentials()
        except OSError as error:
            raise CredentialsError(f"the stored credentials cannot be removed: {error}") from None

    def _end(self, session: Optional[SessionCredential]) -> Optional[str]:
        """Ends a session at the registry. If that fails, returns why it may still be valid there."""
        try:
            if session is not None:
                _tokens.end_session(session).checked()
        except AuthenticationError:
            # it has ended already
            return None
        except TallyError as error:
            return str(error)
        return None

    # ── requests ──

    def call(
        self, method: str, path: str, *, query: Optional[Query] = None, body: Optional[Mapping[str, object]] = None
    ) -> Answer:
        """Sends a request with this process's credential. The answer may be an error."""
        credential = self.credential()
        if credential is None:
            return self._call_locally(method, path, query=query, body=body)
        answer = self._send(credential, method, path, query=query, body=body)
        self._warn_expiry(credential, answer)
        return answer

    def _call_locally(self, method: str, path: str, *, query: Optional[Query], body: Optional[Mapping[str, object]]) -> Answer:
        """Sends a request without a credential: a registry without an issuer knows every program on its machine."""
        config = self._config or _store.read_config()
        # such a registry listens on this machine only, and nothing is encrypted there
        if config is None or not is_plain(config.registry_url):
            raise NotLoggedInError(self._why_not())
        answer = send(method, _url_of(config.registry_url, path, query), body=body)
        if answer.status == 401:
            raise NotLoggedInError(self._why_not())
        return answer

    def call_anonymously(self, method: str, path: str, body: Mapping[str, object]) -> Answer:
        """Sends a request without a credential to the registry in use, or else to the configured one."""
        try:
            credential = self.credential()
        except CredentialsError:
            # a credential that others can read is the reason to send this request
            credential = None
        registry_url = credential.registry_url if credential is not None else self.config().registry_url
        return send(method, registry_url + path, body=body)

    def get(self, kind: Type[Record], path: str, query: Optional[Query] = None) -> Record:
        """Reads one record."""
        return decode(kind, self.call("GET", path, query=query).checked().body)

    def find(self, kind: Type[Record], path: str, name: str) -> Optional[Record]:
        """Reads one record by its name; None if the registry does not have it."""
        # names that a path cannot hold
        if name in ("", ".", ".."):
            return None
        answer = self.call("GET", f"{path}/{segment_of(name)}")
        # a problem document: a path that does not exist at all has another answer on servers that are not Tally
        if answer.status == 404 and answer.code is not None:
            return None
        return decode(kind, answer.checked().body)

    def pages(self, kind: Type[Record], path: str, query: Query) -> Iterator[Record]:
        """Reads a whole list, page by page."""
        cursor: Optional[str] = None
        while True:
            answer = self.call("GET", path, query={**query, "cursor": cursor}).checked()
            items, following = _page_of(answer)
            for item in items:
                yield decode(kind, item)
            if following is None:
                return
            if following == cursor:
                raise ProtocolError(f"the registry answered {answer.what} with the same page again: check its version")
            cursor = following

    def _send(
        self,
        credential: Credential,
        method: str,
        path: str,
        *,
        query: Optional[Query] = None,
        body: Optional[Mapping[str, object]] = None,
    ) -> Answer:
        token = _token_of(credential)
        answer = send(method, _url_of(credential.registry_url, path, query), bearer=token, body=body)
        if answer.status == 401:
            self._refused.add(token)
        else:
            self._refused.discard(token)
        return answer

    def _why_not(self) -> str:
        session = self._session or _store.read_credentials().session
        if session is None:
            return "not logged in: call login() or login_with_api_key() first"
        return f"the login is for {session.registry_url}, and the catalog has another registry now: call login() again"

    def _warn_expiry(self, credential: Credential, answer: Answer) -> None:
        expires = answer.headers.get("Tally-Key-Expires")
        if expires is None or not isinstance(credential, KeyCredential) or self._warned == credential.secret:
            return
        # once for each key: a program may send thousands of requests
        self._warned = credential.secret
        warnings.warn(f"The API key expires at {printable(expires)}: create a new one, and revoke this one", stacklevel=4)


def _token_of(credential: Credential) -> str:
    return credential.secret if isinstance(credential, KeyCredential) else credential.token


def _has_ended(credential: Credential) -> bool:
    return isinstance(credential, SessionCredential) and credential.expires_at <= time.time()


def key_of(api_key: object) -> str:
    """The secret without the space around it. If it cannot be a key, raises ApiKeyFormatError before any request."""
    # some editors begin a file with U+FEFF, which is no white space to Python
    secret = api_key.strip().strip("\ufeff").strip() if isinstance(api_key, str) else ""
    if not secret.startswith(_PREFIX):
        raise ApiKeyFormatError()
    if _SENDABLE.fullmatch(secret) is None:
        raise AuthenticationError()
    return secret


def _url_of(registry_url: str, path: str, query: Optional[Query]) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return registry_url + path + (f"?{urlencode(given, doseq=True, quote_via=quote)}" if given else "")


def segment_of(name: str) -> str:
    """A name as part of a path."""
    if not isinstance(name, str):
        raise TypeError(f"an id or a name must be a str, not {type(name).__name__}")
    return quote(name, safe="")


def _page_of(answer: Answer) -> Tuple[List[Any], Optional[str]]:
    body = answer.body if isinstance(answer.body, dict) else {}
    items, following = body.get("items"), body.get("next")
    if not isinstance(items, list) or not (following is None or isinstance(following, str)):
        raise ProtocolError(f"the registry answered {answer.what} without a list: check that its version fits this package")
    return items, following


def _stored_or_none() -> Credentials:
    try:
        return _store.read_credentials()
    except CredentialsError:
        # what others can read is replaced, not kept
        return Credentials()


def _warn_unwritable(what: str, error: OSError) -> None:
    warnings.warn(f"{what} kept in memory only, because it cannot be stored: {error}", stacklevel=4)


client = Client()
