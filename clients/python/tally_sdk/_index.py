"""Searching the index, explaining it, and re-indexing."""

from itertools import islice
from typing import List, Optional

from ._client import client, segment_of
from ._decode import decode
from .errors import ProtocolError
from .records import Bucket, Explanation, Job, StoredObject

# the largest page of the API
_PAGE_MAX = 1_000


def search(
    q: Optional[str] = None,
    *,
    bucket: Optional[str] = None,
    key: Optional[str] = None,
    prefix: Optional[str] = None,
    extension: Optional[str] = None,
    limit: int = 100,
) -> List[StoredObject]:
    """
    Finds live objects, in the order of bucket and key. All filters must hold. `q`: words of the key, of which the last
    may be the beginning of a word. `limit`: at most this many, over as many pages as that takes.
    """
    if limit < 1:
        raise ValueError("limit must be at least 1")
    filters = {"q": q, "bucket": bucket, "key": key, "prefix": prefix, "extension": extension, "limit": min(limit, _PAGE_MAX)}
    return [*islice(client.pages(StoredObject, "/v1/objects", filters), limit)]


def buckets() -> List[Bucket]:
    """The connected buckets."""
    answer = client.call("GET", "/v1/buckets").checked()
    items = answer.body.get("items") if isinstance(answer.body, dict) else None
    if not isinstance(items, list):
        raise ProtocolError(f"{answer.what} was answered without a list: check that the version of the registry fits this package")
    return [decode(Bucket, item) for item in items]


def explain(bucket: str, key: str) -> Explanation:
    """What the index and the object store hold for one key, and why a search finds it or does not."""
    return client.get(Explanation, f"/v1/buckets/{segment_of(bucket)}/explain", {"key": key})


def reindex(
    bucket: str,
    *,
    prefix: str = "",
    mode: str = "apply",
    fill: bool = False,
    now: bool = False,
    repair: bool = False,
    allow_deletes: Optional[int] = None,
) -> Job:
    """
    Starts a job that compares the bucket with its index, and writes the differences (`mode` apply) or counts them
    (report). Needs the role admin, or an API key with the scope operate.
    """
    body = {"prefix": prefix, "mode": mode, "fill": fill, "now": now, "repair": repair}
    if allow_deletes is not None:
        body["allow_deletes"] = allow_deletes
    return decode(Job, client.call("POST", f"/v1/buckets/{segment_of(bucket)}/reindex", body=body).checked().body)


def jobs() -> List[Job]:
    """The re-index jobs, the oldest first, without their examples."""
    return [*client.pages(Job, "/v1/jobs", {"limit": _PAGE_MAX})]


def job(id: str) -> Optional[Job]:
    """One re-index job; None if there is no such job."""
    return client.find(Job, "/v1/jobs", id)
