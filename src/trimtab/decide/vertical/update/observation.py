"""Everything an update loop depends on, as one value that can be written down and read back."""

from dataclasses import dataclass, field

import msgspec

from trimtab.decide.vertical.compat import VpaCompat
from trimtab.decide.vertical.control.control import VPAIndex, index_vpas
from trimtab.decide.vertical.control.controllers import (
    Controller,
    ControllerIndex,
    ControllerKey,
)
from trimtab.decide.vertical.resources.limit_ranges import merge_limit_ranges
from trimtab.decide.vertical.resources.pod_rules import NO_LIMIT_RANGES, LimitRanges
from trimtab.model.core.objects import LimitRange
from trimtab.model.core.pod import Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope


class ObservedVPA(Wire):
    """A VPA with its target's label selector; None if it could not be read."""

    vpa: VerticalPodAutoscaler
    selector: str | None = None


class ObservedController(Wire):
    """A controller: who controls it (`Kind/namespace/name`), whether it scales, how many replicas it should have."""

    parent: str | None = None
    is_scalable: bool = True
    replicas: int | None = None
    """For a DaemonSet, status.desiredNumberScheduled; None if not known."""


class UpdateObservation(Wire):
    """The cluster as one update loop sees it."""

    vpas: tuple[ObservedVPA, ...] = ()
    scopes: tuple[VPAScope, ...] = ()
    pods: tuple[Pod, ...] = ()
    controllers: dict[str, ObservedController] = msgspec.field(default_factory=dict)
    """By `Kind/namespace/name`."""
    nodes: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Labels by node name."""
    limit_ranges: tuple[LimitRange, ...] = ()
    serves_resize: bool = True
    """Whether the API server has the pods/resize subresource."""

    def index(self, gates: FeatureGates, compat: VpaCompat) -> VPAIndex:
        """Return the VPAs by target, scopes resolved."""
        return index_vpas(
            ((entry.vpa, read_selector(entry.selector)) for entry in self.vpas),
            {scope.metadata.key: scope for scope in self.scopes},
            is_gate_on=gates.vpa_selector_refinement,
            compat=compat,
        )

    def owners(self) -> ControllerIndex:
        """Return the chains of controllers."""
        return ControllerIndex(
            {
                read_key(name): Controller(
                    read_key(found.parent) if found.parent else None, found.is_scalable
                )
                for name, found in self.controllers.items()
            }
        )

    def replicas(self, creator: ControllerKey) -> int | None:
        """Return how many pods the creator should have."""
        found = self.controllers.get(str(creator))
        return found.replicas if found else None


def read_key(text: str) -> ControllerKey:
    """Read `Kind/namespace/name`."""
    kind, namespace, name = text.split("/", 2)
    return ControllerKey(namespace, kind, name)


def read_selector(text: str | None) -> Selector | None:
    """Read a selector; one that is absent or malformed matches nothing."""
    if text is None:
        return None
    try:
        return Selector.parse(text)
    except SelectorError:
        return None


@dataclass(frozen=True)
class NamespaceRanges:
    """Merged LimitRanges of every namespace, merged when first asked for."""

    ranges: tuple[LimitRange, ...]
    _merged: dict[str, LimitRanges] = field(default_factory=dict, repr=False, compare=False)

    def of(self, namespace: str) -> LimitRanges:
        """Return what the namespace's LimitRanges demand together."""
        if not self.ranges:
            return NO_LIMIT_RANGES
        if namespace not in self._merged:
            self._merged[namespace] = LimitRanges(
                merge_limit_ranges(self.ranges, namespace, "Container"),
                merge_limit_ranges(self.ranges, namespace, "Pod"),
            )
        return self._merged[namespace]
