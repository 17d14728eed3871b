"""Operations for administrators."""

from . import api_keys

__all__ = ["api_keys"]
