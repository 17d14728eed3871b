"""Operations for administrators."""

from . import access, api_keys, grants

__all__ = ["access", "api_keys", "grants"]
