"""Searching the index, explaining it, and re-indexing."""

import time
from datetime import date, datetime, timezone
from itertools import chain, islice
from typing import Iterator, List, Mapping, Optional, Sequence, Union

from ._client import Query, client, segment_of
from ._decode import decode
from .records import Bucket, Changes, Explanation, Job, StoredObject, Usage

# the largest page of the API
_PAGE_MAX = 1_000

# a write is searchable within a second
_FOLLOW_INTERVAL_S = 1.0

# a day is its beginning in the zone `tz`; a text is one of the forms of the API
Moment = Union[datetime, date, str]

# values by name; None: any value
Pairs = Mapping[str, Optional[str]]


def search(
    query: Optional[str] = None,
    *,
    tz: Optional[str] = None,
    bucket: Optional[str] = None,
    key: Optional[str] = None,
    prefix: Optional[str] = None,
    contains: Optional[str] = None,
    match: Optional[str] = None,
    extension: Optional[str] = None,
    size_min: Optional[int] = None,
    size_max: Optional[int] = None,
    modified_after: Optional[Moment] = None,
    modified_before: Optional[Moment] = None,
    content_type: Optional[str] = None,
    storage_class: Optional[str] = None,
    etag: Optional[str] = None,
    tags: Optional[Pairs] = None,
    meta: Optional[Pairs] = None,
    deleted: bool = False,
    deleted_after: Optional[Moment] = None,
    deleted_before: Optional[Moment] = None,
    sort: Optional[str] = None,
    order: Optional[str] = None,
    limit: Optional[int] = None,
) -> Iterator[StoredObject]:
    """
    Finds objects, in the order of bucket and key unless `sort` (size, last_modified or deleted_at) and `order` (asc or
    desc) say otherwise. All filters must hold. `query`: words of the key and clauses such as `ext:pdf size>1G`, as in the
    search box. `tags` and `meta`: None stands for any value.

    The first page is read at once, so that a mistake is raised here, and the others as they are needed. All that is found
    comes, or the first `limit`.
    """
    if limit is not None and limit < 1:
        raise ValueError("limit must be at least 1")
    filters: Query = {
        **_filters(
            query=query,
            tz=tz,
            bucket=bucket,
            key=key,
            prefix=prefix,
            contains=contains,
            match=match,
            extension=extension,
            size_min=size_min,
            size_max=size_max,
            modified_after=modified_after,
            modified_before=modified_before,
            content_type=content_type,
            storage_class=storage_class,
            etag=etag,
            tags=tags,
            meta=meta,
        ),
        "deleted": "true" if deleted else None,
        "deleted_after": _moment(deleted_after, "deleted_after"),
        "deleted_before": _moment(deleted_before, "deleted_before"),
        "sort": sort,
        "order": order,
        "limit": min(limit or _PAGE_MAX, _PAGE_MAX),
    }
    found = islice(client.pages(StoredObject, "/v1/objects", filters), limit)
    return chain([*islice(found, 1)], found)


def usage(
    query: Optional[str] = None,
    *,
    by: Union[str, Sequence[str]] = (),
    tz: Optional[str] = None,
    bucket: Optional[str] = None,
    key: Optional[str] = None,
    prefix: Optional[str] = None,
    contains: Optional[str] = None,
    match: Optional[str] = None,
    extension: Optional[str] = None,
    size_min: Optional[int] = None,
    size_max: Optional[int] = None,
    modified_after: Optional[Moment] = None,
    modified_before: Optional[Moment] = None,
    content_type: Optional[str] = None,
    storage_class: Optional[str] = None,
    etag: Optional[str] = None,
    tags: Optional[Pairs] = None,
    meta: Optional[Pairs] = None,
    limit: int = 100,
) -> Usage:
    """
    Sums the objects that search() would find. `by`: in groups, at most `limit` of each kind: folder (of one bucket),
    extension, class, size, age, bucket, or several of them.
    """
    filters: Query = {
        **_filters(
            query=query,
            tz=tz,
            bucket=bucket,
            key=key,
            prefix=prefix,
            contains=contains,
            match=match,
            extension=extension,
            size_min=size_min,
            size_max=size_max,
            modified_after=modified_after,
            modified_before=modified_before,
            content_type=content_type,
            storage_class=storage_class,
            etag=etag,
            tags=tags,
            meta=meta,
        ),
        "by": [by] if isinstance(by, str) else [*by],
        "limit": limit,
    }
    return client.get(Usage, "/v1/usage", filters)


def _filters(
    *,
    query: Optional[str],
    tz: Optional[str],
    bucket: Optional[str],
    key: Optional[str],
    prefix: Optional[str],
    contains: Optional[str],
    match: Optional[str],
    extension: Optional[str],
    size_min: Optional[int],
    size_max: Optional[int],
    modified_after: Optional[Moment],
    modified_before: Optional[Moment],
    content_type: Optional[str],
    storage_class: Optional[str],
    etag: Optional[str],
    tags: Optional[Pairs],
    meta: Optional[Pairs],
) -> Query:
    """A search's filters as the API takes them."""
    return {
        "query": query,
        "tz": tz,
        "bucket": bucket,
        "key": key,
        "prefix": prefix,
        "contains": contains,
        "match": match,
        "extension": extension,
        "size_min": size_min,
        "size_max": size_max,
        "modified_after": _moment(modified_after, "modified_after"),
        "modified_before": _moment(modified_before, "modified_before"),
        "content_type": content_type,
        "storage_class": storage_class,
        "etag": etag,
        "tag": _pairs(tags),
        "meta": _pairs(meta),
    }


def _moment(value: Optional[Moment], name: str) -> Optional[str]:
    """A moment as the API takes it: in UTC with milliseconds, rounded down. A text stays as it is."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        raise ValueError(f"{name} must have a time zone: datetime.now(timezone.utc)")
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1_000:03d}Z"


def _pairs(values: Optional[Pairs]) -> Optional[List[str]]:
    """NAME, or NAME=VALUE, in which the first equals sign ends the name."""
    if values is None:
        return None
    names = {name: name.replace("%", "%25").replace("=", "%3D") for name in values}
    return [names[name] if value is None else f"{names[name]}={value}" for name, value in values.items()]


def buckets() -> List[Bucket]:
    """The connected buckets, across all pages."""
    return [*client.pages(Bucket, "/v1/buckets", {"limit": _PAGE_MAX})]


def changes(
    bucket: str, *, prefix: Optional[str] = None, after: Optional[str] = None, follow: bool = False
) -> Iterator[Changes]:
    """
    What the index of a bucket says, from old to new: pages of puts and deletions, each object at the place of its latest
    write. `after`: the `cursor` of the last page that was applied; None: from the beginning. `follow`: waits for more
    instead of ending.

    Apply each item if its `clock` is not below the one that you have of its key, then store the page's `cursor`. A page with
    `reset` begins again: empty your copy first. The copy equals the index when `more` is false. What fails is raised: go on
    with the last cursor.
    """
    while True:
        query: Query = {"bucket": bucket, "prefix": prefix, "after": after, "limit": _PAGE_MAX}
        page = client.get(Changes, "/v1/changes", query)
        if page.items or page.reset or page.cursor != after:
            yield page
        after = page.cursor
        if page.more:
            continue
        if not follow:
            return
        time.sleep(_FOLLOW_INTERVAL_S)


def explain(bucket: str, key: str) -> Explanation:
    """What the index and S3 hold for one key, and why a search does or doesn't find it."""
    return client.get(Explanation, f"/v1/buckets/{segment_of(bucket)}/explain", {"key": key})


def reindex(
    bucket: str,
    *,
    prefix: str = "",
    mode: str = "apply",
    fill: bool = False,
    now: bool = False,
    repair: bool = False,
) -> Job:
    """
    Starts a job that compares the bucket with its index, and writes the differences (`mode` apply) or counts them
    (report). Needs the role admin, or an API key with the scope operate.
    """
    body = {"prefix": prefix, "mode": mode, "fill": fill, "now": now, "repair": repair}
    return decode(Job, client.call("POST", f"/v1/buckets/{segment_of(bucket)}/reindex", body=body).checked().body)


def jobs() -> List[Job]:
    """The re-index jobs, without their examples: unfinished ones first, then the newest first."""
    return [*client.pages(Job, "/v1/jobs", {"limit": _PAGE_MAX})]


def job(id: str) -> Optional[Job]:
    """One re-index job; None if there is no such job."""
    return client.find(Job, "/v1/jobs", id)
