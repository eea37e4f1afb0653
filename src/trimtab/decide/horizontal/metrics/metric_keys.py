"""Keys under which the memory stores values of a metric."""

from hashlib import blake2s

import msgspec

from trimtab.model.hpa.types import MetricSpec
from trimtab.model.json import wire


def metric_key(spec: MetricSpec) -> str:
    """Return the key of a metric, its target included."""
    asked = msgspec.structs.replace(spec, on_loss=None, max_age_seconds=None)
    return blake2s(wire.encode(asked), digest_size=6).hexdigest()
