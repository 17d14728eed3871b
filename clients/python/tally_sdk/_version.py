"""The version of this package, and the registry versions that it works with."""

import re
from typing import Tuple

from .errors import VersionError
from ._text import printable

VERSION = "1.67.0"

# the first version with API keys
_NEEDED = (1, 67)


def _numbers_of(version: str) -> Tuple[int, int]:
    match = re.match(r"^v?(\d{1,9})\.(\d{1,9})(?![0-9])", version)
    if match is None:
        raise VersionError(f"the registry reports the version {printable(version)!r}, which is not a version number")
    return int(match.group(1)), int(match.group(2))


def check_platform(version: object, address: str) -> None:
    """Raises VersionError if the registry is too old. Versions are compared as numbers: 1.100 is later than 1.67."""
    if not isinstance(version, str):
        raise VersionError(f"{address} does not report its version: version 1.67 or later is needed")
    if _numbers_of(version) < _NEEDED:
        raise VersionError(f"{address} has version {printable(version)}: version 1.67 or later is needed; upgrade the registry")
