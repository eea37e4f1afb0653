"""The rules that a decision follows, and its settings.

Upstream's rules are those of a version of Kubernetes, defects included. Where ours differ, the code asks `rules.ours`; where
the versions of Kubernetes differ, it asks `rules.minor`. A record stores the name. Each difference has a section in docs/decisions/.
"""

from enum import StrEnum

from trimtab.model.json.wire import Wire


class Rules(StrEnum):
    """Whose rules a decision follows, by the name that `--compat` accepts."""

    TRIMTAB = "trimtab"
    KUBERNETES_1_36 = "kubernetes-1.36"  # decides as v1.36.3
    KUBERNETES_1_37 = "kubernetes-1.37"  # decides as v1.37.1

    ours: bool
    minor: int
    """The minor version of Kubernetes whose corrections the rules contain."""

    def __init__(self, name: str) -> None:
        """Derive what the code asks from the name."""
        version = name.removeprefix("kubernetes-1.")
        self.ours = version == name
        # Ours contain those of the next version, 1.38, as far as its changelog names them.
        self.minor = 38 if self.ours else int(version)


class HpaSettings(Wire):
    """Controller settings, with the defaults of kube-controller-manager unless noted."""

    tolerance: float = 0.1
    """How far usage may be from its target before an HPA acts, as a share of the target."""

    cpu_initialization_period: float = 300.0
    """Seconds after its start in which a pod's CPU samples count only if it was Ready."""

    initial_readiness_delay: float = 30.0
    """A pod that turned unready within this time of its start was never ready."""

    downscale_stabilization: float = 300.0
    """How far back the highest recommendation counts before replicas are lowered."""

    scale_up_limit_factor: float = 2.0
    """Without `behavior`, replicas may grow by this factor per sync ..."""

    scale_up_limit_minimum: float = 4.0
    """... or to this number, whichever is more."""

    stale_windows: float = 3.0
    """A sample older than this many of its windows is rejected (ours) ..."""

    stale_after: float = 120.0
    """... but never before this age (ours)."""

    event_interval: float = 300.0
    """Seconds between two emissions of an event that would repeat every sync (ours)."""


DEFAULT_SETTINGS = HpaSettings()
