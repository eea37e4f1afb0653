"""Process-wide limits on evictions, beyond each replica group's budget.

The budget protects one workload. These limits protect the cluster: a number of evictions and a share of its pods per
minute. They also pause workloads whose replacements come back with unchanged requests, because another webhook or
operator sets them. Evicting such pods again has no effect.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from trimtab.decide.vertical.admission.startup_boost import without_boosts
from trimtab.decide.vertical.resources.container_resources import requests_and_limits
from trimtab.model.core.pod import Pod, ResourceList
from trimtab.model.json.wire import Wire
from trimtab.model.readable import counted
from trimtab.model.times import ZERO_TIME

MINUTE = timedelta(minutes=1)
INEFFECTIVE_REASON = "EvictionFruitless"


class EvictionLimitSettings(Wire):
    """Settings of the eviction limits. None switches a limit off."""

    max_evictions_per_minute: int | None = 10
    """In the whole cluster. Ten lets a restart of 3 000 pods take hours, not minutes."""
    max_share_per_minute: float | None = 0.1
    """Of the cluster's live pods; at least one, so that a small cluster moves too."""
    max_missing_per_controller: int | None = 1
    """A controller that lacks this many pods loses no Ready pod to an eviction."""
    max_ineffective: int | None = 3
    """After this many evictions in a row whose replacement had unchanged requests, pause."""
    ineffective_pause_seconds: int = 3600
    backoff_seconds: int = 60
    """The wait after the API refused an eviction (a PodDisruptionBudget), doubled each time."""
    max_backoff_seconds: int = 600


NO_EVICTION_LIMITS = EvictionLimitSettings(
    max_evictions_per_minute=None,
    max_share_per_minute=None,
    max_missing_per_controller=None,
    max_ineffective=None,
    backoff_seconds=0,
)


class EvictionBackoff(Wire):
    """The back-off after the API refused to evict a pod."""

    until: datetime
    count: int = 1


class EvictionTrial(Wire):
    """The effect of evictions of one controller's pods."""

    ineffective: int = 0
    """Evictions in a row whose replacement had unchanged requests."""
    evicted_at: datetime | None = None
    """The last eviction whose replacement has not been observed."""
    requests: str = ""
    """The requests of the evicted pod."""
    paused_until: datetime | None = None


class EvictionLimits(Wire):
    """The state of the eviction limits between loops."""

    evictions: tuple[datetime, ...] = ()
    """Times of the last minute's evictions."""
    trials: dict[str, EvictionTrial] = msgspec.field(default_factory=dict)
    """By creator, `Kind/namespace/name`."""
    backoffs: dict[str, EvictionBackoff] = msgspec.field(default_factory=dict)
    """By pod uid."""


def evictions_left(
    state: EvictionLimits, live_pods: int, now: datetime, settings: EvictionLimitSettings
) -> int | None:
    """Return how many pods may still be evicted in this minute, or None for any number."""
    recent = sum(now - moment < MINUTE for moment in state.evictions)
    limits = []
    if settings.max_evictions_per_minute is not None:
        limits.append(settings.max_evictions_per_minute)
    if settings.max_share_per_minute is not None:
        limits.append(max(int(live_pods * settings.max_share_per_minute), 1))
    return max(min(limits) - recent, 0) if limits else None


def evaluate_trial(
    trial: EvictionTrial, pods: Sequence[Pod], now: datetime, settings: EvictionLimitSettings
) -> EvictionTrial:
    """Return the trial after comparing replacements of an evicted pod with that pod."""
    if trial.evicted_at is None or settings.max_ineffective is None:
        return trial
    # Creation times have whole seconds, so the second of the eviction itself counts as after it.
    evicted_at = trial.evicted_at.replace(microsecond=0)
    replacements = [pod for pod in pods if (pod.metadata.creation_timestamp or ZERO_TIME) >= evicted_at]
    if not replacements:
        return trial
    if any(_spec_requests(pod) != trial.requests for pod in replacements):
        return EvictionTrial()
    ineffective = trial.ineffective + 1
    is_paused = ineffective >= settings.max_ineffective
    until = now + timedelta(seconds=settings.ineffective_pause_seconds) if is_paused else None
    return EvictionTrial(ineffective=ineffective, paused_until=until)


def ineffective_message(creator: str, trial: EvictionTrial) -> str:
    """Return the text of the event about a paused controller."""
    return (
        f"{counted(trial.ineffective, 'pod')} of {creator} in a row came back from eviction with unchanged requests, so something "
        f"else sets them; no more evictions until {trial.paused_until:%Y-%m-%dT%H:%M:%SZ}. "
        "Check that the admission webhook is called and that no other webhook or operator sets requests"
    )


def with_eviction(state: EvictionLimits, creator: str, pod: Pod, now: datetime) -> EvictionLimits:
    """Return the state with one more eviction, whose replacement is to be compared."""
    ineffective = state.trials.get(creator, EvictionTrial()).ineffective
    trial = EvictionTrial(ineffective=ineffective, evicted_at=now, requests=_actual_requests(pod))
    return msgspec.structs.replace(
        state, evictions=(*state.evictions, now), trials={**state.trials, creator: trial}
    )


def with_backoff(
    state: EvictionLimits, uid: str, now: datetime, settings: EvictionLimitSettings
) -> EvictionLimits:
    """Return the state after the API refused to evict a pod."""
    count = state.backoffs[uid].count + 1 if uid in state.backoffs else 1
    wait = min(settings.backoff_seconds * 2 ** min(count - 1, 16), settings.max_backoff_seconds)
    backoff = EvictionBackoff(until=now + timedelta(seconds=wait), count=count)
    return msgspec.structs.replace(state, backoffs={**state.backoffs, uid: backoff})


def drop_expired(
    state: EvictionLimits, uids: Collection[str], creators: Collection[str], now: datetime
) -> EvictionLimits:
    """Return the state without old evictions and without deleted pods and controllers."""
    return EvictionLimits(
        evictions=tuple(moment for moment in state.evictions if now - moment < MINUTE),
        trials={
            creator: trial
            for creator, trial in state.trials.items()
            # A controller may have no pod for a moment after the eviction of its only one.
            if creator in creators or (trial.evicted_at and now - trial.evicted_at < timedelta(hours=1))
        },
        backoffs={uid: backoff for uid, backoff in state.backoffs.items() if uid in uids},
    )


def _spec_requests(pod: Pod) -> str:
    pod = without_boosts(pod)
    return _comparable({container.name: container.resources.requests for container in pod.spec.containers})


def _actual_requests(pod: Pod) -> str:
    # The spec may hold the requests of a resize that waits.
    pod = without_boosts(pod)
    return _comparable(
        {
            container.name: {**container.resources.requests, **requests_and_limits(pod, container.name)[0]}
            for container in pod.spec.containers
        }
    )


def _comparable(requests: Mapping[str, ResourceList]) -> str:
    """Return text that is equal if and only if the requests are."""
    return ";".join(
        f"{name}:" + ",".join(f"{resource}={amount.nanos}" for resource, amount in sorted(amounts.items()))
        for name, amounts in requests.items()
    )
