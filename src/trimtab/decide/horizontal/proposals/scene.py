"""What every proposal of one decision is made from."""

from trimtab.decide.horizontal.compat import Compat
from trimtab.decide.horizontal.pods import PodFacts
from trimtab.decide.horizontal.sanity import Limits
from trimtab.decide.horizontal.settings import Settings
from trimtab.decide.horizontal.tolerance import Tolerance
from trimtab.model.json.wire import Wire


class Scene(Wire):
    """The target and its pods at one moment."""

    namespace: str
    now: float
    current: int
    """spec.replicas of the scale."""
    status_replicas: int
    pods: tuple[PodFacts, ...]
    """The pods that count, after selection."""
    has_pods: bool
    """Whether the target's selector found any pod at all, counted or not."""
    tolerance: Tolerance
    settings: Settings
    compat: Compat
    limits: Limits
    averages_strays: bool = False
    """Whether samples of pods that are not counted are averaged in, as upstream does."""

    @property
    def ready_pods(self) -> int:
        """Return how many of the counted pods are running and ready."""
        return sum(pod.is_ready for pod in self.pods)
