"""Turns the registry's JSON into records, by their classes' annotations."""

import dataclasses
import datetime
import re
import typing
from typing import Any, Dict, Mapping, Tuple, Type, TypeVar, Union

from .errors import ProtocolError

Record = TypeVar("Record")

_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6})\d*)?Z")
_LATE = re.compile(r"\+\d{6}-\d{2}-\d{2}T[\d:.]+Z")

_hints: Dict[type, Dict[str, Any]] = {}


def decode(kind: Type[Record], value: object) -> Record:
    """A record from JSON. Fields that this version does not know are left out. Raises ProtocolError naming a wrong field."""
    record: Record = _decoded(kind, value, kind.__name__)
    return record


def _decoded(kind: Any, value: object, where: str) -> Any:
    if kind is object:
        return value
    if dataclasses.is_dataclass(kind):
        return _record_of(kind, value, where)
    origin = typing.get_origin(kind)
    if origin is Union:
        return _one_of(typing.get_args(kind), value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_decoded(typing.get_args(kind)[0], each, where) for each in value)
    if origin is not None and issubclass(origin, typing.get_origin(Mapping[str, str]) or dict) and isinstance(value, dict):
        return {name: _decoded(typing.get_args(kind)[1], each, f"{where}.{name}") for name, each in value.items()}
    return _scalar_of(kind, value, where)


def _record_of(kind: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise _unexpected(where)
    if kind not in _hints:
        _hints[kind] = typing.get_type_hints(kind)
    fields = {}
    for each in dataclasses.fields(kind):
        # `from_` and `class_`: what Python reserves
        name = each.name.rstrip("_")
        inner = f"{where}.{name}"
        if name in value:
            fields[each.name] = _decoded(_hints[kind][each.name], value[name], inner)
        elif each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
            raise _unexpected(inner)
    return kind(**fields)


def _one_of(kinds: Tuple[Any, ...], value: object, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    others = [kind for kind in kinds if kind is not type(None)]
    for kind in others[:-1]:
        try:
            return _decoded(kind, value, where)
        except ProtocolError:
            continue
    return _decoded(others[-1], value, where)


def _scalar_of(kind: Any, value: object, where: str) -> Any:
    if kind is datetime.datetime and isinstance(value, str):
        return time_of(value, where)
    if kind is datetime.date and isinstance(value, str):
        return _day_of(value, where)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    # a bool is an int to Python only
    if kind in (str, int, bool) and type(value) is kind:
        return value
    raise _unexpected(where)


def time_of(text: str, where: str) -> datetime.datetime:
    """A time from the API, in UTC. Times that Python cannot express become the latest that it can."""
    match = _TIME.fullmatch(text)
    if match is None:
        if _LATE.fullmatch(text):
            return datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)
        raise _unexpected(where)
    fraction = int((match.group(7) or "").ljust(6, "0"))
    parts = [int(part) for part in match.groups()[:6]]
    try:
        return datetime.datetime(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], fraction, datetime.timezone.utc)
    except ValueError:
        raise _unexpected(where) from None


def _day_of(text: str, where: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise _unexpected(where) from None


def _unexpected(where: str) -> ProtocolError:
    return ProtocolError(f"the registry answered with an unexpected {where}: check that its version fits this package")
