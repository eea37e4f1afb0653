"""Times in objects, built-in or custom."""

from trimtab.model.times import parse_time


def is_time(text: str) -> bool:
    """Tell whether a text is an RFC 3339 time."""
    try:
        parse_time(text)
    except ValueError:
        return False
    return True
