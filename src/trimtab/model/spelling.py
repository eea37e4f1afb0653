"""Finds the name that a misspelt one probably means."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

CLOSE = 0.7
"""How alike two names must be, from 0 to 1: a letter too many, or another ending."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like a name, whatever its case and its domain, or an empty text."""
    by_last_part = {_last_part(candidate): candidate for candidate in known}
    # difflib counts transposed letters as two mistakes, too many for names as short as `top`.
    for transposed in _transposed(_last_part(name)):
        if transposed in by_last_part:
            return by_last_part[transposed]
    found = get_close_matches(_last_part(name), by_last_part, n=1, cutoff=CLOSE)
    return by_last_part[found[0]] if found else ""


def _transposed(name: str) -> Iterator[str]:
    """Yield a name with each two neighbouring letters transposed."""
    for first in range(len(name) - 1):
        yield name[:first] + name[first + 1] + name[first] + name[first + 2 :]


def _last_part(name: str) -> str:
    return name.rpartition("/")[2].casefold()
