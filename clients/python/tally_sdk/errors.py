"""What can go wrong. Every error of this package is a TallyError, and no message contains a secret."""

from typing import Optional

AUTHENTICATION_FAILED = "Authentication failed. Check your credentials or API key."
PREFIX_NEEDED = "API key must start with 'qk_' prefix"


class TallyError(Exception):
    """Something failed. The message says what happened and what to do."""


class ConfigurationError(TallyError):
    """The catalog's or registry's address is missing or unusable."""


class VersionError(ConfigurationError):
    """The registry is older than this package needs."""


class CredentialsError(TallyError):
    """The stored credentials' files cannot be read, or others could have changed them."""


class ApiKeyFormatError(TallyError, ValueError):
    """The text cannot be an API key. No request was sent."""

    def __init__(self) -> None:
        super().__init__(PREFIX_NEEDED)


class AuthenticationError(TallyError):
    """The credentials are wrong, expired or revoked."""

    def __init__(self, message: str = AUTHENTICATION_FAILED) -> None:
        super().__init__(message)


class NotLoggedInError(AuthenticationError):
    """There are no credentials. No request was sent."""


class LoginError(TallyError):
    """A login did not succeed."""


class UnreachableError(TallyError):
    """The server did not answer in time, or at all. The request may be repeated."""


class ProtocolError(TallyError):
    """The answer is not one that Tally sends, or it is a redirect, which is never followed."""


class RequestError(TallyError):
    """The registry refused the request. `code` says why and never changes its meaning."""

    def __init__(self, message: str, *, status: int, code: str, advice: Optional[str] = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.advice = advice


class PermissionDeniedError(RequestError):
    """The caller is known, but is not allowed to do this: a role, a scope or an interactive login is missing."""
