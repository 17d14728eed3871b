"""Texts from outside, made safe to show."""

# longer texts of a server help no reader
_LENGTH_MAX = 2_000


def printable(text: str) -> str:
    """The text, shortened, without control characters and others that could change what a terminal shows."""
    cut = text if len(text) <= _LENGTH_MAX else text[:_LENGTH_MAX] + "…"
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in cut)
