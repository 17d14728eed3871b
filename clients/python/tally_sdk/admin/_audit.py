"""The audit. The caller must be an administrator; an API key needs the scope admin."""

from typing import Iterator, Optional

from .._client import client
from ..records import AuditRecord


def audit(
    date: Optional[str] = None,
    *,
    from_: Optional[str] = None,
    to: Optional[str] = None,
    email: Optional[str] = None,
    event: Optional[str] = None,
    key: Optional[str] = None,
) -> Iterator[AuditRecord]:
    """
    Who did what, when, and how it ended: the records that match all filters, the newest first, page by page. `date`: a day in
    UTC, as 2026/11/21; `from_` and `to`: a day (2026-11-21) or a time (2026-11-21T08:00:00Z); `key`: the name or the
    fingerprint of an API key.
    """
    query = {"date": date, "from": from_, "to": to, "email": email, "event": event, "key": key, "limit": 1_000}
    return client.pages(AuditRecord, "/v1/admin/audit", query)
