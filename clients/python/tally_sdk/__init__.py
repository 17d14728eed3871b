"""
The client of Tally.

    import tally_sdk as sdk

    sdk.configure("https://catalog.example.com")
    sdk.login()
    key, secret = sdk.api_keys.create("nightly-import-prod-2026-11", expires_in_days=90)

and in a program that runs without a person:

    sdk.login_with_api_key(os.environ["SERVICE_API_KEY"], registry_url=os.environ["SERVICE_REGISTRY_URL"])
    for each in sdk.search("annual report", extension="pdf"):
        print(each.bucket, each.key)

This package reads no environment variable for its credentials or addresses: the caller passes them.
"""

from typing import Optional

from . import admin, api_keys
from ._client import client as _state
from ._index import buckets, changes, explain, job, jobs, reindex, search, usage
from ._login import login as _log_in
from ._version import VERSION as __version__
from .errors import (
    ApiKeyFormatError,
    AuthenticationError,
    ConfigurationError,
    CredentialsError,
    LoginError,
    NotLoggedInError,
    PermissionDeniedError,
    ProtocolError,
    RequestError,
    TallyError,
    UnreachableError,
    VersionError,
)
from .records import (
    Access,
    ApiKey,
    AuditRecord,
    Bucket,
    BucketStatus,
    Caller,
    Changes,
    Explanation,
    Grant,
    Grouping,
    Job,
    Reader,
    StoredObject,
    Sums,
    Usage,
    UsageGroup,
    User,
)


def configure(catalog_url: str) -> None:
    """Reads the catalog's configuration at this address and stores it. A catalog with another registry needs a new login."""
    _state.configure(catalog_url)


def login(*, browser: Optional[bool] = None) -> None:
    """
    Logs in by the browser, and stores the credentials for this user of the machine. Where no browser can be opened, an
    address and a prompt are shown: open the address anywhere, and paste the code. `browser=False` does this in any case.
    An API key is no longer used afterwards.
    """
    _log_in(browser)


def logged_in() -> Optional[str]:
    """
    The address of the catalog if there are credentials that can be used; None otherwise. No request is sent: those that
    ended elsewhere count until a request of this process is refused.
    """
    try:
        credential = _state.credential()
    except CredentialsError:
        # the next request raises it: credentials that others can read are not used
        return None
    return credential.catalog_url if credential is not None and _state.is_usable(credential) else None


def logout() -> None:
    """Ends the session, and removes all stored credentials: the login's and the API key's."""
    _state.forget()


def login_with_api_key(api_key: str, registry_url: str, *, persist: bool = False) -> None:
    """
    Authenticates with an API key, which precedes a stored login until logout() or login(). The registry is asked at once
    whether it accepts the key. The key is kept in memory; `persist=True` stores it for this user of the machine too.
    """
    _state.use_key(api_key, registry_url, persist)


def whoami() -> Caller:
    """Who this program is to the registry: user, role, scopes and what it may read."""
    return _state.get(Caller, "/v1/session")


__all__ = [
    "Access",
    "ApiKey",
    "ApiKeyFormatError",
    "AuditRecord",
    "AuthenticationError",
    "Bucket",
    "BucketStatus",
    "Caller",
    "Changes",
    "ConfigurationError",
    "CredentialsError",
    "Explanation",
    "Grant",
    "Grouping",
    "Job",
    "LoginError",
    "NotLoggedInError",
    "PermissionDeniedError",
    "ProtocolError",
    "Reader",
    "RequestError",
    "StoredObject",
    "Sums",
    "TallyError",
    "UnreachableError",
    "Usage",
    "UsageGroup",
    "User",
    "VersionError",
    "__version__",
    "admin",
    "api_keys",
    "buckets",
    "changes",
    "configure",
    "explain",
    "job",
    "jobs",
    "logged_in",
    "login",
    "login_with_api_key",
    "logout",
    "reindex",
    "search",
    "usage",
    "whoami",
]
