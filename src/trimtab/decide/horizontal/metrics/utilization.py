"""The usage of pods as a ratio of its target.

Utilization is cut to a whole percent, and averages to whole thousandths, before the ratio is taken. Upstream's integers decide
at the edges of the tolerance, so ours are the same.
"""

from typing import NamedTuple

from trimtab.decide.horizontal.arithmetic import fold32, fold64, quotient, ratio_of
from trimtab.decide.horizontal.config import HpaCompat
from trimtab.decide.horizontal.metrics.pod_groups import Groups
from trimtab.decide.horizontal.metrics.proposal import Gaps, Misconfigured, UnusableMetric
from trimtab.decide.horizontal.observation.pods import MissingRequestError, PodSnapshot

NO_SAMPLES = "did not receive metrics for targeted pods (pods might be unready)"
NO_PODS = "no pods returned by selector while calculating replica count"


class Utilization:
    """Usage as a share of requests, over the pods that have both."""

    __slots__ = ("_compat", "_requests", "average", "groups", "percent", "ratio", "target")

    def __init__(self, groups: Groups, requests: dict[str, int], target: int, compat: HpaCompat) -> None:
        """Measure the ready pods against `target` percent."""
        self.groups, self._requests, self.target, self._compat = groups, requests, target, compat
        ready = groups.ready
        asked = (
            sum(requests.values())
            if len(ready) == len(requests)
            else sum([requests[pod.name] for pod in ready])
        )
        used = sum(groups.values)
        self.percent = self._percent(used, asked)
        self.ratio = ratio_of(self.percent, target)
        self.average = quotient(fold64(used, saturate=compat.saturate), len(ready))

    def _percent(self, used: int, asked: int) -> int:
        saturate = self._compat.saturate
        asked = fold64(asked, saturate=saturate)
        if not asked:
            raise UnusableMetric("no metrics returned matched known pods")
        used = fold64(fold64(used, saturate=saturate) * 100, saturate=saturate)
        return fold32(quotient(used, asked), saturate=saturate)

    def with_missing_pods(self, counts_unready: bool) -> tuple[float, int]:
        """Return the ratio and the number of samples with the missing pods, and with unready pods as idle.

        A missing pod counts as fully used when shrinking, and as idle when growing.
        """
        groups, requests, saturate = self.groups, self._requests, self._compat.saturate
        used, asked = sum(groups.values), sum(requests[pod.name] for pod in groups.ready)
        samples = len(groups.ready) + len(groups.stray)
        if self.ratio != 1.0:
            share = max(100, self.target) if self.ratio < 1.0 else 0
            for pod in groups.missing:
                request = requests[pod.name]
                used += quotient(fold64(request * share, saturate=saturate), 100)
                asked += request
            samples += len(groups.missing)
        if counts_unready:
            asked += sum(requests[pod.name] for pod in groups.unready)
            samples += len(groups.unready)
        return ratio_of(self._percent(used, asked), self.target), samples

    def gaps(self) -> Gaps:
        """Return how `with_missing_pods` changes the ratio."""
        groups, requests = self.groups, self._requests
        ready, missing, unready = (
            sum(requests[pod.name] for pod in pods) for pods in (groups.ready, groups.missing, groups.unready)
        )
        weights = Weights(ready, missing, unready)
        return gaps_of(groups, weights, max(100, self.target))


class Average:
    """Usage per pod against a target, both in thousandths."""

    __slots__ = ("_compat", "average", "groups", "ratio", "target")

    def __init__(self, groups: Groups, target: int, compat: HpaCompat) -> None:
        """Measure the ready pods, and stray samples where those count."""
        self.groups, self.target, self._compat = groups, target, compat
        self.average = self._average(
            sum(groups.values) + sum(groups.stray), len(groups.values) + len(groups.stray)
        )
        self.ratio = ratio_of(self.average, target)

    def _average(self, used: int, samples: int) -> int:
        return quotient(fold64(used, saturate=self._compat.saturate), samples)

    def with_missing_pods(self, counts_unready: bool) -> tuple[float, int]:
        """Return the ratio and the number of samples with the missing pods, and with unready pods as idle.

        A missing pod counts as used at the target when shrinking, and as idle when growing.
        """
        groups = self.groups
        used = sum(groups.values) + sum(groups.stray)
        samples = len(groups.values) + len(groups.stray)
        if self.ratio != 1.0:
            used += len(groups.missing) * self.target if self.ratio < 1.0 else 0
            samples += len(groups.missing)
        if counts_unready:
            samples += len(groups.unready)
        return ratio_of(self._average(used, samples), self.target), samples

    def gaps(self) -> Gaps:
        """Return how `with_missing_pods` changes the ratio."""
        groups = self.groups
        measured = len(groups.values) + len(groups.stray)
        weights = Weights(measured, len(groups.missing), len(groups.unready))
        return gaps_of(groups, weights, self.target)


class Weights(NamedTuple):
    """The weight of each group of pods in an average: their requests, or their number."""

    ready: int
    missing: int
    unready: int


def gaps_of(groups: Groups, weights: Weights, used: int) -> Gaps:
    """Return how gaps change an average in which a missing pod counts as `used` when shrinking."""
    growing = max(sum(weights), 1)
    shrinking = max(weights.ready + weights.missing, 1)
    measured = len(groups.ready) + len(groups.stray) + len(groups.missing)
    return Gaps(
        up_share=weights.ready / growing,
        up_pods=measured + len(groups.unready),
        down_share=weights.ready / shrinking,
        down_rest=used * weights.missing / shrinking,
        down_pods=measured,
    )


def requests_of(
    pods: tuple[PodSnapshot, ...], resource: str, container: str, compat: HpaCompat
) -> dict[str, int]:
    """Return the request of each pod. Every listed pod needs one, as upstream has it."""
    adds_overhead = not compat.requests_without_overhead
    if compat.saturate and not container and not adds_overhead:
        try:
            return {pod.name: pod.requests[resource] for pod in pods}
        except KeyError:
            # A pod has no containers, or a request is missing. Which one is named must not depend on the order.
            pods = tuple(sorted(pods, key=lambda pod: pod.name))
    try:
        requests = {
            pod.name: pod.request_of(resource, container, adds_overhead=adds_overhead) for pod in pods
        }
        return {name: fold64(request, saturate=compat.saturate) for name, request in requests.items()}
    except MissingRequestError as error:
        raise Misconfigured(str(error)) from error
