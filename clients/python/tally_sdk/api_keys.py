"""The caller's API keys."""

from typing import List, Mapping, Optional, Sequence, Tuple

from ._client import client, key_of, segment_of
from ._decode import decode
from .errors import ProtocolError, RequestError
from .records import ApiKey

_PATH = "/v1/api-keys"


def create(
    name: str,
    expires_in_days: int = 90,
    *,
    scopes: Optional[Sequence[str]] = None,
) -> Tuple[ApiKey, str]:
    """
    Creates a key; needs an interactive login. Returns its record and its secret, which is shown this once.

    `expires_in_days`: 1 to 365. `scopes`: what the key may do (read, operate, admin); by default all that its owner
    may do, except admin.
    """
    if isinstance(expires_in_days, float):
        # JSON writes 90.0 as a number that is whole, too
        detail = "expires_in_days: must be a whole number from 1 to 365 (request.invalid)"
        raise RequestError(detail, status=400, code="request.invalid")
    asked: Mapping[str, object] = {"name": name, "expires_in_days": expires_in_days}
    if scopes is not None:
        asked = {**asked, "scopes": [*scopes]}
    answer = client.call("POST", _PATH, body=asked).checked()
    body = answer.body if isinstance(answer.body, dict) else {}
    secret = body.get("secret")
    if not isinstance(secret, str):
        raise ProtocolError(f"the registry answered {answer.what} without the secret: list the keys, and revoke this one")
    return decode(ApiKey, body.get("key")), secret


def list(name: Optional[str] = None, fingerprint: Optional[str] = None, status: Optional[str] = None) -> List[ApiKey]:
    """The caller's keys that match all filters exactly. `status`: ACTIVE or EXPIRED. Revoked keys are not listed."""
    return [*client.pages(ApiKey, _PATH, {"name": name, "fingerprint": fingerprint, "status": status})]


def get(id: str) -> Optional[ApiKey]:
    """One of the caller's keys; None if there is no such key."""
    return client.find(ApiKey, _PATH, id)


def revoke(*, id: Optional[str] = None, secret: Optional[str] = None) -> None:
    """
    Revokes a key, by exactly one of its id and its secret. By its secret it needs no login, and does not report whether
    there was such a key: anyone who found a secret can end it.
    """
    if (id is None) == (secret is None):
        raise ValueError("revoke takes exactly one of id and secret")
    if secret is not None:
        client.call_anonymously("POST", f"{_PATH}/revoke", {"secret": key_of(secret)}).checked()
    elif id is not None:
        client.call("DELETE", f"{_PATH}/{segment_of(id)}").checked()
