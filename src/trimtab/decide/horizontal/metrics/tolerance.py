"""How far usage may drift from its target before anything happens (KEP-4951)."""

from sys import float_info

from trimtab.decide.horizontal.config import HpaSettings
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity


class Tolerance(Wire):
    """Shares of the target, one per direction; both bounds belong to the band."""

    up: float = 0.1
    down: float = 0.1

    def covers(self, ratio: float) -> bool:
        """Return whether a ratio of usage to target is close enough to 1 to stay put; NaN is not."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up

    def __str__(self) -> str:
        return f"[down:{self.down * 100.0:.1f}%, up:{self.up * 100.0:.1f}%]"


def tolerance_of(
    behavior: HorizontalPodAutoscalerBehavior | None, settings: HpaSettings, gates: FeatureGates
) -> Tolerance:
    """Return the tolerances in force: each direction's own where the gate is on and it is set, else the global one."""
    up = down = settings.tolerance
    if behavior is not None and gates.hpa_configurable_tolerance:
        if behavior.scale_up is not None and behavior.scale_up.tolerance is not None:
            up = _bounded(behavior.scale_up.tolerance)
        if behavior.scale_down is not None and behavior.scale_down.tolerance is not None:
            down = _bounded(behavior.scale_down.tolerance)
    return Tolerance(up=up, down=down)


def _bounded(tolerance: Quantity) -> float:
    """Return the tolerance as upstream's float; one beyond all floats is the largest, which covers as much."""
    return min(tolerance.as_float(), float_info.max)
