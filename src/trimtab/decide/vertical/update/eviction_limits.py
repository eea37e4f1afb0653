"""Brakes on eviction, beyond each group's budget.

The budget protects one workload; these protect the cluster (no more than so many evictions a minute, no more than
a share of its pods), and a workload whose pods come back unchanged, because somebody else overrides what we set:
evicting those again and again disturbs and helps nobody.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from trimtab.decide.vertical.admission.startup_boost import without_boosts
from trimtab.decide.vertical.resources.container_resources import requests_and_limits
from trimtab.model.core.pod import Pod, ResourceList
from trimtab.model.json.wire import Wire
from trimtab.model.times import ZERO_TIME

MINUTE = timedelta(minutes=1)
FRUITLESS_REASON = "EvictionFruitless"


class BrakeSettings(Wire):
    """How hard the brakes are set; None switches one off."""

    max_evictions_per_minute: int | None = 10
    """In the whole cluster. Ten lets a restart of 3 000 pods take hours, not minutes."""
    max_share_per_minute: float | None = 0.1
    """Of the cluster's live pods; at least one, so that a small cluster moves too."""
    max_missing_per_controller: int | None = 1
    """A controller that already lacks this many pods loses none that is Ready to us."""
    fruitless_limit: int | None = 3
    """After so many evictions in a row whose replacement came back unchanged, stop."""
    fruitless_pause_seconds: int = 3600
    refusal_backoff_seconds: int = 60
    """After the API refused an eviction (a PodDisruptionBudget), wait; doubled each time."""
    refusal_backoff_limit_seconds: int = 600


NO_BRAKES = BrakeSettings(
    max_evictions_per_minute=None,
    max_share_per_minute=None,
    max_missing_per_controller=None,
    fruitless_limit=None,
    refusal_backoff_seconds=0,
)


class Refusal(Wire):
    """An eviction that the API refused: not again before `until`."""

    until: datetime
    count: int = 1


class EvictionTrial(Wire):
    """How evictions of one controller turned out."""

    fruitless: int = 0
    evicted_at: datetime | None = None
    """The last eviction whose replacement has not been seen."""
    requests: str = ""
    """What the evicted pod had."""
    paused_until: datetime | None = None


class EvictionLimits(Wire):
    """What the brakes remember between loops."""

    evictions: tuple[datetime, ...] = ()
    """Moments of the last minute's evictions."""
    trials: dict[str, EvictionTrial] = msgspec.field(default_factory=dict)
    """By creator, `Kind/namespace/name`."""
    refusals: dict[str, Refusal] = msgspec.field(default_factory=dict)
    """By pod uid."""


def evictions_left(
    state: EvictionLimits, live_pods: int, now: datetime, settings: BrakeSettings
) -> int | None:
    """Return how many pods may still be evicted in this minute; None means any number."""
    recent = sum(now - moment < MINUTE for moment in state.evictions)
    limits = []
    if settings.max_evictions_per_minute is not None:
        limits.append(settings.max_evictions_per_minute)
    if settings.max_share_per_minute is not None:
        limits.append(max(int(live_pods * settings.max_share_per_minute), 1))
    return max(min(limits) - recent, 0) if limits else None


def requests_text(pod: Pod) -> str:
    """Return the requests that a pod's spec has but for startup boosts, as text that is equal if and only if they are."""
    pod = without_boosts(pod)
    return _text({container.name: container.resources.requests for container in pod.spec.containers})


def present_text(pod: Pod) -> str:
    """Return the same of what the pod has; its spec may ask for more in a resize that waits."""
    pod = without_boosts(pod)
    return _text(
        {
            container.name: {**container.resources.requests, **requests_and_limits(pod, container.name)[0]}
            for container in pod.spec.containers
        }
    )


def _text(requests: Mapping[str, ResourceList]) -> str:
    return ";".join(
        f"{name}:" + ",".join(f"{resource}={amount.nanos}" for resource, amount in sorted(amounts.items()))
        for name, amounts in requests.items()
    )


def judge_trial(
    trial: EvictionTrial, pods: Sequence[Pod], now: datetime, settings: BrakeSettings
) -> EvictionTrial:
    """Look whether the replacement of an evicted pod came back changed, and count it if not."""
    if trial.evicted_at is None or settings.fruitless_limit is None:
        return trial
    # Creation times have whole seconds, so the second of the eviction itself counts as after it.
    evicted_at = trial.evicted_at.replace(microsecond=0)
    replacements = [pod for pod in pods if (pod.metadata.creation_timestamp or ZERO_TIME) >= evicted_at]
    if not replacements:
        return trial
    if any(requests_text(pod) != trial.requests for pod in replacements):
        return EvictionTrial()
    fruitless = trial.fruitless + 1
    is_paused = fruitless >= settings.fruitless_limit
    until = now + timedelta(seconds=settings.fruitless_pause_seconds) if is_paused else None
    return EvictionTrial(fruitless=fruitless, paused_until=until)


def fruitless_message(creator: str, trial: EvictionTrial) -> str:
    """Return the text of the event that says why evictions of one controller are paused."""
    return (
        f"{trial.fruitless} pods of {creator} in a row came back from eviction with unchanged requests, so something "
        f"else sets them; no more evictions until {trial.paused_until:%Y-%m-%dT%H:%M:%SZ}. "
        "Check that the admission webhook is called and that no other webhook or operator sets requests"
    )


def after_eviction(state: EvictionLimits, creator: str, pod: Pod, now: datetime) -> EvictionLimits:
    """Return the state with one more eviction to watch."""
    trial = state.trials.get(creator, EvictionTrial())
    watched = EvictionTrial(fruitless=trial.fruitless, evicted_at=now, requests=present_text(pod))
    return msgspec.structs.replace(
        state, evictions=(*state.evictions, now), trials={**state.trials, creator: watched}
    )


def after_refusal(state: EvictionLimits, uid: str, now: datetime, settings: BrakeSettings) -> EvictionLimits:
    """Return the state with one more refusal of the API to wait out."""
    count = state.refusals[uid].count + 1 if uid in state.refusals else 1
    wait = min(
        settings.refusal_backoff_seconds * 2 ** min(count - 1, 16), settings.refusal_backoff_limit_seconds
    )
    refusal = Refusal(until=now + timedelta(seconds=wait), count=count)
    return msgspec.structs.replace(state, refusals={**state.refusals, uid: refusal})


def still_relevant(
    state: EvictionLimits, uids: Iterable[str], creators: frozenset[str] | set[str], now: datetime
) -> EvictionLimits:
    """Return the state without what is over: old evictions, pods and creators that are gone."""
    live = frozenset(uids)
    return EvictionLimits(
        evictions=tuple(moment for moment in state.evictions if now - moment < MINUTE),
        trials={
            creator: trial
            for creator, trial in state.trials.items()
            # A creator may be without pods for a moment after the eviction of its only one.
            if creator in creators or (trial.evicted_at and now - trial.evicted_at < timedelta(hours=1))
        },
        refusals={uid: refusal for uid, refusal in state.refusals.items() if uid in live},
    )
