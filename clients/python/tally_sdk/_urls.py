"""Addresses to which credentials may be sent: https, or http on this machine only."""

import ipaddress
import re
from typing import Tuple

from .errors import ConfigurationError
from ._text import printable

_ADDRESS = re.compile(
    r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::(\d{1,5}))?(/[a-z0-9._~!$&'()*+,;=:@%/-]*)?",
    # with Unicode, two letters that are not in ASCII would count as k and s
    re.IGNORECASE | re.ASCII,
)
_DEFAULT_PORTS = {"https": 443, "http": 80}
# no address needs more; it bounds what is stored and shown
_LENGTH_MAX = 2_000


def base_of(url: object, what: str) -> str:
    """A catalog's address without a trailing slash. Raises ConfigurationError for an unusable one."""
    origin, path = _parts_of(url, what)
    return origin + path.rstrip("/")


def origin_of(url: object, what: str) -> str:
    """A registry's address, which has no path. Raises ConfigurationError for an unusable one."""
    origin, path = _parts_of(url, what)
    if path not in ("", "/"):
        raise ConfigurationError(f"{what} must be https://HOST without a path: {_shown(url)}")
    return origin


def is_plain(origin: str) -> bool:
    """Whether requests to the address are unencrypted."""
    return origin.startswith("http:")


def _parts_of(url: object, what: str) -> Tuple[str, str]:
    match = _ADDRESS.fullmatch(url.strip()) if isinstance(url, str) and len(url) <= _LENGTH_MAX else None
    if match is None:
        raise ConfigurationError(f"{what} must be an address such as https://catalog.example.com: {_shown(url)}")
    scheme, host = match.group(1).lower(), match.group(2).lower()
    port = int(match.group(3) or _DEFAULT_PORTS[scheme])
    if not 1 <= port <= 65_535:
        raise ConfigurationError(f"{what} has a port that does not exist: {_shown(url)}")
    if scheme == "http" and not _is_loopback(host):
        raise ConfigurationError(f"{what} must use https; http is allowed for this machine only: {_shown(url)}")
    origin = f"{scheme}://{host}" if port == _DEFAULT_PORTS[scheme] else f"{scheme}://{host}:{port}"
    return origin, match.group(4) or ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _shown(url: object) -> str:
    # what was given may hold a password before an @
    return printable(repr(re.sub(r"//[^/@]*@", "//***@", url))) if isinstance(url, str) else type(url).__name__
