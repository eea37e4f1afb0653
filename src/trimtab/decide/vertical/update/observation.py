"""Everything that an update loop depends on, as one value that records serialise."""

import msgspec

from trimtab.decide.vertical.control.claims import VPAIndex, index_vpas
from trimtab.decide.vertical.control.controllers import Controller, ControllerIndex, ControllerKey
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.objects import LimitRange
from trimtab.model.core.pod import Pod
from trimtab.model.core.server_rules import ServerRules, rules_of
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope


class ObservedVPA(Wire):
    """A VPA with its target's label selector."""

    vpa: VerticalPodAutoscaler
    selector: str | None = None
    """None if it could not be read."""


class ObservedController(Wire):
    """A controller of pods or of other controllers."""

    parent: str | None = None
    """Its own controller, `Kind/namespace/name`."""
    is_scalable: bool = True
    replicas: int | None = None
    """For a DaemonSet, status.desiredNumberScheduled, or None if not known."""


class UpdateObservation(Wire):
    """The cluster at the start of one update loop."""

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
    kubernetes: str = ""
    """The version of the API server, such as `1.37`; empty if it is not known."""

    @property
    def server_rules(self) -> ServerRules:
        """Return the rules of the API server."""
        return rules_of(self.kubernetes)

    def index(self, gates: FeatureGates, rules: Rules) -> VPAIndex:
        """Return the VPAs by target, scopes resolved."""
        return index_vpas(
            ((entry.vpa, read_selector(entry.selector)) for entry in self.vpas),
            {scope.metadata.key: scope for scope in self.scopes},
            is_gate_on=gates.vpa_selector_refinement,
            rules=rules,
        )

    def owners(self) -> ControllerIndex:
        """Return the chains of controllers."""
        return ControllerIndex(
            {
                read_key(key): Controller(
                    read_key(controller.parent) if controller.parent else None, controller.is_scalable
                )
                for key, controller in self.controllers.items()
            }
        )

    def replicas(self, creator: ControllerKey) -> int | None:
        """Return how many pods the creator should have."""
        controller = self.controllers.get(str(creator))
        return controller.replicas if controller else None


def read_key(text: str) -> ControllerKey:
    """Read `Kind/namespace/name`."""
    kind, namespace, name = text.split("/", 2)
    return ControllerKey(namespace, kind, name)


def read_selector(text: str | None) -> Selector | None:
    """Read a selector, or None if it is absent or malformed."""
    if text is None:
        return None
    try:
        return Selector.parse(text)
    except SelectorError:
        return None
