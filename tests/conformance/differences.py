"""Compare what upstream answered with what we answer, and name each path where they part."""

import json
from collections.abc import Iterator
from typing import Any


def differences(want: Any, got: Any) -> str | None:
    """Return one line `path: want X, got Y` per difference between two JSON values, or None.

    Numbers are compared as numbers (1 and 1.0 are the same answer), booleans only with booleans.
    """
    lines = list(_walk("", want, got))
    return "\n".join(lines) if lines else None


def paths_of(difference: str) -> set[str]:
    """Return the paths a difference text names."""
    return {line.partition(": want ")[0] for line in difference.splitlines()}


def _walk(path: str, want: Any, got: Any) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            yield from _walk(f"{path}.{key}" if path else key, want.get(key, _ABSENT), got.get(key, _ABSENT))
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for index, (one, other) in enumerate(zip(want, got, strict=True)):
            yield from _walk(f"{path}[{index}]", one, other)
    elif not _same(want, got):
        yield f"{path or 'answer'}: want {_shown(want)}, got {_shown(got)}"


def _same(want: Any, got: Any) -> bool:
    if isinstance(want, bool) or isinstance(got, bool):
        return want is got
    return bool(want == got)


class _Absent:
    """The value of a key that is not there."""


_ABSENT = _Absent()


def _shown(value: Any) -> str:
    return (
        "nothing" if value is _ABSENT else json.dumps(value, default=repr, ensure_ascii=False, sort_keys=True)
    )
