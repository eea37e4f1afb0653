"""What an informer counts, and what it keeps of objects that cannot be decoded."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """What the cache keeps of an object that could not be decoded."""

    uid: str
    resource_version: str
    why: str


@dataclass(slots=True)
class InformerCounts:
    """Counters of an informer. Each is a metric."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    stale_events: int = 0
    received: int = 0
    """Bytes of lists and watch events."""
    dropped: int = 0
    """Objects of other shards that arrived in lists and watches."""
    stale_lists: int = 0
    failures: int = 0
    unreadable: dict[tuple[str, str], UnreadableObject] = field(default_factory=dict)
    """Objects on the server that could not be decoded, by namespace and name."""
