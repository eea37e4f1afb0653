"""What the operator of the autoscaler may set; durations are in seconds."""

from trimtab.model.json.wire import Wire


class Settings(Wire):
    """Controller settings; the defaults are those of kube-controller-manager unless said."""

    tolerance: float = 0.1
    """How far usage may be from its target before anything happens, as a share of the target."""

    cpu_initialization_period: float = 300.0
    """How long after its start a pod's CPU samples are doubted."""

    initial_readiness_delay: float = 30.0
    """A pod that turned unready within this time of its start was never ready."""

    downscale_stabilization: float = 300.0
    """How far back the highest recommendation counts before replicas are lowered."""

    scale_up_limit_factor: float = 2.0
    """Without `behavior`, replicas may grow by this factor per sync ..."""

    scale_up_limit_minimum: float = 4.0
    """... or to this number, whichever is more."""

    stale_windows: float = 3.0
    """A sample older than this many of its windows is refused (ours) ..."""

    stale_after: float = 120.0
    """... but never before this age (ours)."""

    ahead_limit: float = 60.0
    """A sample dated further in the future than this is refused (ours)."""

    event_interval: float = 300.0
    """How often an event that would repeat every sync is told (ours)."""


DEFAULT_SETTINGS = Settings()
