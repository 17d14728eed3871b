"""Operations for administrators."""

from . import access, api_keys, grants
from ._audit import audit

__all__ = ["access", "api_keys", "audit", "grants"]
