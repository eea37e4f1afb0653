"""What tells one metric of a spec from any other, for what is remembered of it."""

from hashlib import blake2s

import msgspec

from trimtab.model.hpa.types import MetricSpec
from trimtab.model.json import wire


def key_of(spec: MetricSpec) -> str:
    """Return the key of a metric, its target included: an answer to another question is none."""
    asked = msgspec.structs.replace(spec, on_loss=None, max_age_seconds=None)
    return blake2s(wire.encode(asked), digest_size=6).hexdigest()
