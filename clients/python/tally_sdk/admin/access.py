"""Who may read this, and what this person may read. The caller must be an administrator who has logged in."""

from typing import List

from .._client import client, segment_of
from ..records import Access, Reader


def readers(where: str) -> List[Reader]:
    """The people who have logged in and may read something of BUCKET, BUCKET/PREFIX, or * (any bucket)."""
    return [*client.pages(Reader, "/v1/admin/readers", {"where": where, "limit": 1_000})]


def of(user_id: str) -> Access:
    """What the person with this id may read, and by which grants."""
    return client.get(Access, f"/v1/admin/users/{segment_of(user_id)}/access")
