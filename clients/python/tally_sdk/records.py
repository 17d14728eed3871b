"""What the registry answers, as read-only records. All times are aware datetimes in UTC."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Mapping, Optional, Tuple, Union


@dataclass(frozen=True)
class ApiKey:
    """An API key without its secret."""

    id: str
    name: str
    user_email: str
    # safe to show: the beginning and the end of the secret
    fingerprint: str
    # ACTIVE or EXPIRED, by the clock of the registry when it answered
    status: str
    created_at: datetime
    expires_at: datetime
    # None: never used
    last_used_at: Optional[datetime]
    # what the key may do: read, operate, admin
    scopes: Tuple[str, ...] = ()
    # whether the owner is disabled, so that the key is refused; in answers to administrators only
    owner_disabled: Optional[bool] = None
    # the id of the owner, and whether the issuer vouches for the address; in answers to administrators only
    user_id: Optional[str] = None
    user_email_verified: Optional[bool] = None


@dataclass(frozen=True)
class User:
    """A user of the registry."""

    id: str
    email: str
    # whether the issuer vouches for the address; None: the registry does not authenticate callers
    email_verified: Optional[bool] = None


@dataclass(frozen=True)
class Caller:
    """Who this program is to the registry."""

    # user or admin
    role: str
    # session, api_key or local
    kind: str
    catalog_url: str
    version: str
    # what it may read: BUCKET, BUCKET/PREFIX, or * for everything
    reads: Tuple[str, ...]
    # None for a program on the registry's machine that has not logged in
    user: Optional[User] = None
    scopes: Tuple[str, ...] = ()
    key: Optional[ApiKey] = None
    # why it reads less than it may expect, and whom to ask
    advice: Optional[str] = None


@dataclass(frozen=True)
class Grant:
    """Somebody may read the keys of a bucket, or those with a prefix."""

    # user:EMAIL, group:VALUE or everyone
    who: str
    # BUCKET, BUCKET/PREFIX, or * for every bucket
    where: str
    granted_by: str
    created_at: datetime


@dataclass(frozen=True)
class Reader:
    """A person who may read something of a bucket."""

    user_id: str
    email: str
    # user or admin; administrators read everything
    role: str
    # the grants by which the person reads something of it
    by: Tuple[Grant, ...] = ()


@dataclass(frozen=True)
class Access:
    """What a person may read, and why."""

    user_id: str
    email: str
    role: str
    # BUCKET, BUCKET/PREFIX, or * for everything
    reads: Tuple[str, ...]
    # administrator, readers (TALLY_READERS is everyone), grants, or too_many (too many parts: the person reads nothing)
    because: str
    grants: Tuple[Grant, ...] = ()
    # the groups of the last login, and whether the issuer left some out
    groups: Tuple[str, ...] = ()
    groups_left_out: bool = False


@dataclass(frozen=True)
class StoredObject:
    """What the index holds for one key. Fields that the object store did not report are None."""

    bucket: str
    key: str
    deleted: bool
    settled: bool
    source: str
    clock: int
    indexed_at: datetime
    name: Optional[str] = None
    extension: Optional[str] = None
    size: Optional[int] = None
    etag: Optional[str] = None
    version_id: Optional[str] = None
    last_modified: Optional[datetime] = None
    last_modified_exact: Optional[bool] = None
    storage_class: Optional[str] = None
    content_type: Optional[str] = None
    user_metadata: Optional[Mapping[str, str]] = None
    tags: Optional[Mapping[str, str]] = None
    expires_at: Optional[datetime] = None
    deleted_at: Optional[datetime] = None
    event_name: Optional[str] = None
    event_time: Optional[datetime] = None


@dataclass(frozen=True)
class Changes:
    """A page of the feed of a bucket's index."""

    items: Tuple[StoredObject, ...]
    # where the next page begins
    cursor: str
    more: bool
    # the follower begins again: the items, and all that come later, belong to an empty copy
    reset: bool = False


@dataclass(frozen=True)
class BucketStatus:
    """How far the index of a bucket can be relied on."""

    # ok, or of several others the worst, such as events_lost, deletions_held, differs or never_compared
    state: str
    # ok, warning or bad
    severity: str
    # the same in one sentence
    sentence: str
    since: Optional[datetime] = None


@dataclass(frozen=True)
class Bucket:
    """A connected bucket. Fields that only administrators see are None for others."""

    bucket: str
    status: BucketStatus
    region: Optional[str] = None
    source: Optional[str] = None
    enrich: Optional[str] = None
    created_at: Optional[datetime] = None
    created_by: Optional[str] = None
    checked_at: Optional[datetime] = None
    topic_arn: Optional[str] = None
    last_event_at: Optional[datetime] = None
    last_compared_at: Optional[datetime] = None


@dataclass(frozen=True)
class Sums:
    """Objects, and their bytes as far as their sizes are known."""

    objects: int
    bytes: int


@dataclass(frozen=True)
class UsageGroup:
    """A group of objects."""

    objects: int
    bytes: int
    # None: objects that have none
    name: Optional[str] = None
    # the clauses that narrow `query` to this group; None: no clause does
    filter: Optional[str] = None


@dataclass(frozen=True)
class Grouping:
    """What was found in groups: the largest first, sizes and ages in their own order."""

    by: str
    groups: Tuple[UsageGroup, ...]
    # the objects of all other groups; None: there are none
    others: Optional[Sums] = None


@dataclass(frozen=True)
class Usage:
    """Objects, and their bytes as far as their sizes are known."""

    objects: int
    bytes: int
    # in the order in which they were asked for
    by: Tuple[Grouping, ...]


@dataclass(frozen=True)
class Explanation:
    """One key in the index and in the object store."""

    bucket: str
    key: str
    # True, False or "unknown"
    agrees: Union[bool, str]
    # why a search finds the object or does not
    sentence: str
    # what the object store reports now, or the fault that prevented an answer; as the API has it
    storage: object
    # what the index holds; None: nothing
    index: Optional[StoredObject] = None


@dataclass(frozen=True)
class Job:
    """A re-index job or a drift report."""

    id: str
    bucket: str
    prefix: str
    # apply or report
    mode: str
    requested_by: str
    state: str
    created_at: datetime
    started_at: Optional[datetime] = None
    finished_at: Optional[datetime] = None
    phase: Optional[str] = None
    waits_until: Optional[datetime] = None
    covers_before: Optional[datetime] = None
    # 0 to 1; None while it is not known
    progress: Optional[float] = None
    counts: Optional[Mapping[str, float]] = None
    # the first differences of each kind, as the API has them; lists leave them out
    examples: Optional[Mapping[str, object]] = None
    # why the job failed
    error: Optional[Mapping[str, object]] = None
    cost_usd: Optional[float] = None


@dataclass(frozen=True)
class AuditRecord:
    """One record of the audit. An act of an administrator has two with one request_id: intended, then done or failed."""

    id: str
    eventtime: datetime
    eventname: str
    # email, userId, and sessionContext.auth with type, keyName and keyFingerprint
    useridentity: Mapping[str, object]
    # the day in UTC, as 2026/11/21
    date: str
    outcome: str
    request_id: str
    sourceipaddress: Optional[str] = None
    reason: Optional[str] = None
    parameters: Optional[Mapping[str, object]] = None
