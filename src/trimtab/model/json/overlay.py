"""Write a changed value over the JSON it was read from, so that nothing we do not know is lost.

The structs name only the fields that we read. Whoever changes one and writes it back uses `overlay`: what did not
change stays as it was spelt, what changed is replaced, and unknown fields stay wherever their parent stays.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.json import wire


def overlay(raw: Mapping[str, Any], before: wire.Wire, after: wire.Wire) -> dict[str, Any]:
    """Return a copy of `raw`, from which `before` was read, that reads as `after`."""
    out = dict(raw)
    for field in msgspec.structs.fields(after):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if _same(old, new):
            continue
        name = field.encode_name
        if new is None or new in ((), {}):
            out.pop(name, None)
        else:
            out[name] = _merged(raw.get(name), old, new)
    return out


def _merged(raw: Any, old: Any, new: Any) -> Any:
    if isinstance(new, wire.Wire) and isinstance(raw, Mapping) and type(old) is type(new):
        return overlay(raw, old, new)
    if isinstance(new, tuple) and isinstance(raw, list) and len(raw) == len(old) == len(new):
        # Elements keep their place, so the unknown fields of each stay with it.
        return [
            each if _same(was, now) else _merged(each, was, now)
            for each, was, now in zip(raw, old, new, strict=True)
        ]
    # Through JSON, so that tuples come out as the lists they are there.
    return msgspec.json.decode(wire.encode(new))


def _same(old: Any, new: Any) -> bool:
    """Compare by what is written: 1Gi and 1024Mi are equal amounts but different texts."""
    return bool(old == new) and wire.to_builtins(old) == wire.to_builtins(new)
