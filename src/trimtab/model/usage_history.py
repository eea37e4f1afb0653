"""The past of one namespace: what its containers used, and which labels its pods carried, moment by moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class ContainerName(NamedTuple):
    """A container of a pod of the namespace."""

    pod: str
    container: str


Series = Mapping[ContainerName, tuple[float, ...]]
"""Per container a number for each moment; NaN where nothing was measured."""


class Labelled(NamedTuple):
    """The labels that a pod had from one moment on."""

    since: int
    """The place of that moment in the history's times."""
    labels: Mapping[str, str] | None
    """None where they changed within the step: what was used then cannot be told apart."""


@dataclass(frozen=True)
class UsageHistory:
    """Usage of one namespace on a grid of moments; they are the same for all its containers."""

    namespace: str
    times_ns: tuple[int, ...] = ()
    cpu: Series = field(default_factory=dict)
    """Cores."""
    memory: Series = field(default_factory=dict)
    """Bytes."""
    labels: Mapping[str, tuple[Labelled, ...]] = field(default_factory=dict)
    """Per pod its labels over time, by their beginning; a pod that is missing here was never seen with its labels."""

    @property
    def pods(self) -> tuple[str, ...]:
        """Return the pods that used anything, by name."""
        return tuple(sorted({name.pod for series in (self.cpu, self.memory) for name in series}))

    @property
    def label_keys(self) -> frozenset[str]:
        """Return the label keys that the history tells about."""
        turns = (turn for turns in self.labels.values() for turn in turns)
        return frozenset(key for turn in turns for key in turn.labels or ())
