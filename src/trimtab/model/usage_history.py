"""Past usage of a namespace: what its containers used, and which labels its pods had."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class ContainerName(NamedTuple):
    """A container and its pod."""

    pod: str
    container: str


Series = Mapping[ContainerName, tuple[float, ...]]
"""A number per container and time, NaN where nothing was measured."""


class Labelled(NamedTuple):
    """The labels that a pod had from a time on."""

    since: int
    """The index of that time in `UsageHistory.times_ns`."""
    labels: Mapping[str, str] | None
    """None where they changed within the step, so that its usage cannot be assigned."""


@dataclass(frozen=True)
class UsageHistory:
    """Usage of one namespace at times that all its containers share."""

    namespace: str
    times_ns: tuple[int, ...] = ()
    cpu: Series = field(default_factory=dict)
    """Cores."""
    memory: Series = field(default_factory=dict)
    """Bytes."""
    labels: Mapping[str, tuple[Labelled, ...]] = field(default_factory=dict)
    """The labels of each pod in order of time; a pod whose labels are unknown is absent."""

    @property
    def pods(self) -> tuple[str, ...]:
        """Return the names of pods with usage, sorted."""
        return tuple(sorted({name.pod for series in (self.cpu, self.memory) for name in series}))

    @property
    def label_keys(self) -> frozenset[str]:
        """Return the keys of all labels in the history."""
        entries = (entry for entries in self.labels.values() for entry in entries)
        return frozenset(key for entry in entries for key in entry.labels or ())
