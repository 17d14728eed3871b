"""
Files that only their owner can read: a folder with the mode 0700 and files with the mode 0600, on systems that have modes.

A file is replaced as a whole (written beside it, then renamed), so that another process reads the old or the new one.
"""

import os
import secrets
import stat
from pathlib import Path
from typing import Optional

from .errors import CredentialsError

_HAS_MODES = os.name == "posix"
# bits of a mode that files with credentials must not have
_OPEN_TO_OTHERS = 0o077
_WRITABLE_BY_OTHERS = 0o022


def folder() -> Path:
    """The folder that all Tally clients share. Raises OSError if this user has no home."""
    variable = "XDG_CONFIG_HOME" if _HAS_MODES else "APPDATA"
    base = os.environ.get(variable, "")
    if os.path.isabs(base):
        return Path(base) / "tally"
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise FileNotFoundError("this user has no home folder")
    return Path(home) / ".config" / "tally"


def read(name: str, *, open_allowed: bool = False) -> Optional[bytes]:
    """
    The content of a file; None if it is not there. Raises CredentialsError if others can replace it, or unless
    `open_allowed`, read it.
    """
    forbidden = _WRITABLE_BY_OTHERS if open_allowed else _OPEN_TO_OTHERS
    try:
        path = folder() / name
        found = path.stat()
        _check(path.parent.stat(), path.parent, forbidden)
        _check(found, path, forbidden)
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CredentialsError(f"{path} cannot be read: {error.strerror}; remove it and log in again") from None


def write(name: str, content: bytes) -> None:
    """Replaces a file. Raises OSError if this cannot be done, and CredentialsError if others can read the folder."""
    place = folder()
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.mkdir(mode=0o700, exist_ok=True)
    _check(place.stat(), place, _OPEN_TO_OTHERS)
    beside = place / f".{name}.{os.getpid()}.{secrets.token_hex(8)}"
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, place / name)
    except BaseException:
        beside.unlink()
        raise


def remove(name: str) -> None:
    """Removes a file, and its remains from killed processes. Raises OSError if it still exists afterwards."""
    try:
        place = folder()
    except FileNotFoundError:
        return
    try:
        (place / name).unlink()
    except (FileNotFoundError, NotADirectoryError):
        pass
    for left in place.glob(f".{name}.*"):
        # another process may rename or remove it at this moment
        left.unlink(missing_ok=True)


def _check(found: os.stat_result, path: Path, forbidden: int) -> None:
    is_folder = stat.S_ISDIR(found.st_mode)
    if not is_folder and not stat.S_ISREG(found.st_mode):
        raise CredentialsError(f"{path} is not a file: remove it and log in again")
    if not _HAS_MODES:
        return
    if found.st_uid != os.geteuid():
        raise CredentialsError(f"{path} belongs to another user, who can read or replace it: remove it and log in again")
    if found.st_mode & forbidden:
        mode = "700" if is_folder else "600"
        raise CredentialsError(f"{path} is open to other users: revoke what it contains if they may have read it, then chmod {mode} {path}")
