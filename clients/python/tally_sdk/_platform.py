"""A catalog's configuration document."""

from ._http import send
from ._store import Config
from ._urls import base_of, origin_of
from ._version import check_platform
from .errors import ProtocolError

# the document is static: an answer that takes longer does not come
_TIMEOUT_S = 15.0


def fetch_config(catalog_url: str) -> Config:
    """Reads which registry the catalog has, without a credential. Raises VersionError if the registry is too old."""
    catalog = base_of(catalog_url, "catalog_url")
    address = f"{catalog}/config.json"
    body = send("GET", address, timeout_s=_TIMEOUT_S).checked().body
    if not isinstance(body, dict) or not isinstance(body.get("registryUrl"), str):
        raise ProtocolError(f"{address} has no registryUrl: check that it is the address of a catalog")
    check_platform(body.get("version"), catalog)
    return Config(catalog, origin_of(body["registryUrl"], f"the registryUrl of {address}"))
