"""JSON merge patch (RFC 7386)."""

from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` merged in; null removes, lists are replaced whole."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged
