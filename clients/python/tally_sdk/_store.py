"""What is stored on this machine: the addresses, an interactive login, an API key. The command line reads the same files."""

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Union

from . import _files
from ._urls import base_of, origin_of
from .errors import ConfigurationError, CredentialsError

_CONFIG = "config.json"
_CREDENTIALS = "credentials.json"
# raised by a change that earlier versions would misread
_FORMAT = 1


@dataclass(frozen=True)
class Config:
    """The catalog, and the registry that it named when it was configured."""

    catalog_url: str
    registry_url: str


@dataclass(frozen=True)
class SessionCredential:
    """An interactive login. Its token is sent only to `registry_url`."""

    registry_url: str
    catalog_url: str
    token: str = field(repr=False)
    # when the session ends at the latest, by the clock of this machine, in seconds since 1970
    expires_at: float


@dataclass(frozen=True)
class KeyCredential:
    """An API key. It is sent only to `registry_url`."""

    registry_url: str
    catalog_url: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Credentials:
    """What credentials.json holds."""

    session: Optional[SessionCredential] = None
    api_key: Optional[KeyCredential] = None


def read_config() -> Optional[Config]:
    """The stored addresses; None if configure() was never called here."""
    try:
        stored = _read(_CONFIG)
        if stored is None:
            return None
        return Config(base_of(stored.get("catalog_url"), "catalog_url"), origin_of(stored.get("registry_url"), "registry_url"))
    except ConfigurationError as error:
        raise CredentialsError(f"{_CONFIG} cannot be used: {error}; call configure() again") from None


def write_config(config: Config) -> None:
    """Stores the addresses. Raises OSError if this user's home is not writable."""
    _write(_CONFIG, {"catalog_url": config.catalog_url, "registry_url": config.registry_url})


def read_credentials(*, open_allowed: bool = False) -> Credentials:
    """
    The stored credentials. Raises CredentialsError if others can replace them, or unless `open_allowed`, read them, or if
    they cannot be parsed.
    """
    stored = _read(_CREDENTIALS, open_allowed)
    if stored is None:
        return Credentials()
    try:
        return Credentials(_session_of(stored.get("session")), _key_of(stored.get("api_key")))
    except (TypeError, KeyError, AttributeError, ConfigurationError):
        raise CredentialsError(f"{_CREDENTIALS} is damaged: remove it and log in again") from None


def write_credentials(credentials: Credentials) -> None:
    """Stores the credentials. Raises OSError if this user's home is not writable."""
    if credentials == Credentials():
        _files.remove(_CREDENTIALS)
        return
    stored: Dict[str, Any] = {}
    if credentials.session is not None:
        session = credentials.session
        stored["session"] = {
            "registry_url": session.registry_url,
            "catalog_url": session.catalog_url,
            "token": session.token,
            "expires_at": session.expires_at,
        }
    if credentials.api_key is not None:
        key = credentials.api_key
        stored["api_key"] = {"registry_url": key.registry_url, "catalog_url": key.catalog_url, "secret": key.secret}
    _write(_CREDENTIALS, stored)


def remove_credentials() -> None:
    """Removes all stored credentials without reading them."""
    _files.remove(_CREDENTIALS)


def _session_of(stored: Any) -> Optional[SessionCredential]:
    if stored is None:
        return None
    return SessionCredential(
        registry_url=origin_of(stored["registry_url"], "registry_url"),
        catalog_url=base_of(stored["catalog_url"], "catalog_url"),
        token=_text_of(stored["token"]),
        expires_at=_number_of(stored["expires_at"]),
    )


def _key_of(stored: Any) -> Optional[KeyCredential]:
    if stored is None:
        return None
    return KeyCredential(
        registry_url=origin_of(stored["registry_url"], "registry_url"),
        catalog_url=base_of(stored["catalog_url"], "catalog_url"),
        secret=_text_of(stored["secret"]),
    )


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _number_of(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise TypeError


def _read(name: str, open_allowed: bool = False) -> Optional[Dict[str, Any]]:
    content = _files.read(name, open_allowed=open_allowed)
    if content is None:
        return None
    try:
        parsed: Union[Dict[str, Any], object] = json.loads(content)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise CredentialsError(f"{name} is damaged: remove it and log in again")
    if parsed.get("format") != _FORMAT:
        raise CredentialsError(f"{name} was written by another version of Tally: upgrade this one, or remove the file and log in again")
    return parsed


def _write(name: str, values: Dict[str, Any]) -> None:
    _files.write(name, (json.dumps({"format": _FORMAT, **values}, indent=2) + "\n").encode())
