"""Which pods' samples count: ready, unready, missing and ignored pods.

Readiness matters for CPU alone, because a starting pod burns CPU that says nothing about load. Succeeded pods are not special
(kk#86151): without a sample they are missing, as upstream has it.
"""

from collections.abc import Iterable, Mapping

from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.observation.samples import Sample
from trimtab.decide.horizontal.observation.staleness import ANYTHING_GOES, SampleAgeLimits
from trimtab.decide.horizontal.rules import HpaSettings


class Groups:
    """Pods by what their samples are worth, with the `values` of the ready pods."""

    __slots__ = ("ignored", "missing", "ready", "rejected", "stray", "unready", "values")

    def __init__(self) -> None:
        self.ready: list[PodSnapshot] = []
        self.values: list[int] = []
        self.unready: list[PodSnapshot] = []
        self.missing: list[PodSnapshot] = []
        self.ignored: list[PodSnapshot] = []
        self.rejected: list[tuple[str, str]] = []
        """Names of the missing pods whose samples were rejected, with the rule."""
        self.stray: list[int] = []
        """Samples of pods that are not in the list; upstream averages them in."""


def group_pods(
    pods: Iterable[PodSnapshot],
    samples: Mapping[str, Sample],
    now: float,
    settings: HpaSettings,
    *,
    is_cpu: bool,
    limits: SampleAgeLimits = ANYTHING_GOES,
) -> Groups:
    """Sort pods into groups by their samples."""
    groups = Groups()
    find, take, keep = samples.get, groups.ready.append, groups.values.append
    fresh_after, ahead, lowest = limits.fresh_after, limits.ahead, limits.lowest
    period = settings.cpu_initialization_period
    for pod in pods:
        sample = find(pod.name)
        # Nearly every pod runs, is long ready and has a fresh sample; all others take the full rule.
        if (
            sample is not None
            and sample.value >= lowest
            and fresh_after <= sample.timestamp <= ahead
            and pod.phase == "Running"
            and not pod.is_deleted
            and (
                not is_cpu
                or (pod.ready == "True" and pod.started is not None and pod.started + period <= now)
            )
        ):
            take(pod)
            keep(sample.value)
        else:
            _place(groups, pod, sample, now, settings, limits, is_cpu=is_cpu)
    return groups


def _place(
    groups: Groups,
    pod: PodSnapshot,
    sample: Sample | None,
    now: float,
    settings: HpaSettings,
    limits: SampleAgeLimits,
    *,
    is_cpu: bool,
) -> None:
    if pod.is_deleted or pod.phase == "Failed":
        groups.ignored.append(pod)
    elif pod.phase == "Pending":
        groups.unready.append(pod)
    elif sample is None:
        groups.missing.append(pod)
    elif rule := limits.reject_reason(sample):
        groups.missing.append(pod)
        groups.rejected.append((pod.name, rule))
    elif is_cpu and is_initializing(pod, sample, now, settings):
        groups.unready.append(pod)
    else:
        groups.ready.append(pod)
        groups.values.append(sample.value)


def is_initializing(pod: PodSnapshot, sample: Sample, now: float, settings: HpaSettings) -> bool:
    """Return whether a pod's CPU sample is from before it was ready for work."""
    if not pod.ready or pod.started is None:
        return True
    if pod.started + settings.cpu_initialization_period > now:
        # Young: the sample counts only if a whole window was measured since readiness last changed.
        return pod.ready == "False" or sample.timestamp < pod.ready_since + sample.window
    # Old and unready: was it ever ready? It was, if readiness changed well after the start.
    return pod.ready == "False" and pod.started + settings.initial_readiness_delay > pod.ready_since


def stray_values(pods: Iterable[PodSnapshot], samples: Mapping[str, Sample]) -> list[int]:
    """Return the samples of pods that are not listed (just deleted, or foreign)."""
    listed = {pod.name for pod in pods}
    return [sample.value for name, sample in samples.items() if name not in listed]
