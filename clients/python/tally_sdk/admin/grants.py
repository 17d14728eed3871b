"""Who may read which keys. The caller must be an administrator."""

from typing import List, Optional

from .._client import client
from .._decode import decode
from ..records import Grant

_PATH = "/v1/admin/grants"


def add(who: str, where: str) -> Grant:
    """
    Lets someone read the keys of a bucket, or those with a prefix; it counts from the next request on. `who`: user:EMAIL,
    group:VALUE or everyone. `where`: BUCKET, BUCKET/PREFIX, or * for every bucket.
    """
    return decode(Grant, client.call("POST", _PATH, body={"who": who, "where": where}).checked().body)


def list(who: Optional[str] = None, where: Optional[str] = None) -> List[Grant]:
    """The grants; only those to `who`, and those by which something of `where` may be read."""
    return [*client.pages(Grant, _PATH, {"who": who, "where": where, "limit": 1_000})]


def remove(who: str, where: str) -> Grant:
    """Removes a grant; it counts from the next request on. What another grant gives stays."""
    return decode(Grant, client.call("POST", f"{_PATH}/remove", body={"who": who, "where": where}).checked().body)
