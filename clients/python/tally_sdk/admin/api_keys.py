"""The API keys of all users. The caller must be an administrator; an API key needs the scope admin."""

import datetime
from typing import List, Optional, Union

from .._client import client, segment_of
from ..records import ApiKey

_PATH = "/v1/admin/api-keys"


def list(
    email: Optional[str] = None,
    key_name: Optional[str] = None,
    status: Optional[str] = None,
    *,
    unused_since: Union[datetime.date, str, None] = None,
) -> List[ApiKey]:
    """
    The keys of all users that match all filters exactly. `status`: ACTIVE or EXPIRED. `unused_since`: only keys that were
    last used before this time, or were created before it and never used.
    """
    since = _text_of(unused_since)
    query = {"email": email, "key_name": key_name, "status": status, "unused_since": since, "limit": 1_000}
    return [*client.pages(ApiKey, _PATH, query)]


def get(id: str) -> Optional[ApiKey]:
    """One key of any user; None if there is no such key."""
    return client.find(ApiKey, _PATH, id)


def revoke(*, id: str) -> None:
    """Revokes a key of any user."""
    client.call("DELETE", f"{_PATH}/{segment_of(id)}").checked()


def _text_of(moment: Union[datetime.date, str, None]) -> Optional[str]:
    if not isinstance(moment, datetime.datetime):
        return moment.isoformat() if isinstance(moment, datetime.date) else moment
    if moment.tzinfo is None:
        raise ValueError("unused_since must be a date, or a datetime with a time zone")
    return moment.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
