"""How far usage may be from its target before an HPA acts (KEP-4951)."""

from sys import float_info

from trimtab.decide.horizontal.rules import HpaSettings
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity


class Tolerance(Wire):
    """Shares of the target per direction, bounds included."""

    up: float = 0.1
    down: float = 0.1

    def covers(self, ratio: float) -> bool:
        """Return whether a ratio of usage to target is close enough to 1."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up

    def __str__(self) -> str:
        return f"[down:{self.down * 100.0:.1f}%, up:{self.up * 100.0:.1f}%]"


def tolerance_of(
    behavior: HorizontalPodAutoscalerBehavior | None, settings: HpaSettings, gates: FeatureGates
) -> Tolerance:
    """Return the tolerance in force: the behavior's with the gate on, else the controller's."""
    up = down = settings.tolerance
    if behavior is not None and gates.hpa_configurable_tolerance:
        if behavior.scale_up is not None and behavior.scale_up.tolerance is not None:
            up = _bounded(behavior.scale_up.tolerance)
        if behavior.scale_down is not None and behavior.scale_down.tolerance is not None:
            down = _bounded(behavior.scale_down.tolerance)
    return Tolerance(up=up, down=down)


def _bounded(tolerance: Quantity) -> float:
    # A tolerance beyond all floats counts as the largest float, which covers as much.
    return min(tolerance.as_float(), float_info.max)
