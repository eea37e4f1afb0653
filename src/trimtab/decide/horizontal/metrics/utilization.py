"""The usage of pods as a ratio of its target.

Utilization is cut to a whole percent, and averages to whole thousandths, before the ratio is taken. Upstream's integers decide
at the edges of the tolerance, so ours are the same.
"""

from typing import NamedTuple

from trimtab.decide.horizontal.arithmetic import int32_of, quotient, ratio_of
from trimtab.decide.horizontal.metrics.pod_groups import Groups
from trimtab.decide.horizontal.metrics.proposal import Gaps, Misconfigured, UnusableMetric
from trimtab.decide.horizontal.observation.pods import MissingRequestError, PodSnapshot
from trimtab.decide.horizontal.rules import Rules

NO_SAMPLES = "did not receive metrics for targeted pods (pods might be unready)"
NO_PODS = "no pods returned by selector while calculating replica count"


class Utilization:
    """Usage as a share of requests, over the pods that have both."""

    __slots__ = ("_requests", "average", "groups", "percent", "ratio", "target")

    def __init__(self, groups: Groups, requests: dict[str, int], target: int) -> None:
        """Measure the ready pods against `target` percent."""
        self.groups, self._requests, self.target = groups, requests, target
        ready = groups.ready
        asked = (
            sum(requests.values())
            if len(ready) == len(requests)
            else sum([requests[pod.name] for pod in ready])
        )
        used = sum(groups.values)
        self.percent = _percent(used, asked)
        self.ratio = ratio_of(self.percent, target)
        self.average = quotient(used, len(ready))

    def with_missing_pods(self, counts_unready: bool) -> tuple[float, int]:
        """Return the ratio and the number of samples with the missing pods, and with unready pods as idle.

        A missing pod counts as fully used when shrinking, and as idle when growing.
        """
        groups, requests = self.groups, self._requests
        used, asked = sum(groups.values), sum(requests[pod.name] for pod in groups.ready)
        samples = len(groups.ready) + len(groups.stray)
        if self.ratio != 1.0:
            share = max(100, self.target) if self.ratio < 1.0 else 0
            for pod in groups.missing:
                request = requests[pod.name]
                used += quotient(request * share, 100)
                asked += request
            samples += len(groups.missing)
        if counts_unready:
            asked += sum(requests[pod.name] for pod in groups.unready)
            samples += len(groups.unready)
        return ratio_of(_percent(used, asked), self.target), samples

    def gaps(self) -> Gaps:
        """Return how `with_missing_pods` changes the ratio."""
        groups, requests = self.groups, self._requests
        ready, missing, unready = (
            sum(requests[pod.name] for pod in pods) for pods in (groups.ready, groups.missing, groups.unready)
        )
        weights = Weights(ready, missing, unready)
        return gaps_of(groups, weights, max(100, self.target))


def _percent(used: int, asked: int) -> int:
    if not asked:
        raise UnusableMetric("no metrics returned matched known pods")
    return int32_of(quotient(used * 100, asked))


class Average:
    """Usage per pod against a target, both in thousandths."""

    __slots__ = ("average", "groups", "ratio", "target")

    def __init__(self, groups: Groups, target: int) -> None:
        """Measure the ready pods, and stray samples where those count."""
        self.groups, self.target = groups, target
        used = sum(groups.values) + sum(groups.stray)
        self.average = quotient(used, len(groups.values) + len(groups.stray))
        self.ratio = ratio_of(self.average, target)

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
        return ratio_of(quotient(used, samples), self.target), samples

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


def requests_of(pods: tuple[PodSnapshot, ...], resource: str, container: str, rules: Rules) -> dict[str, int]:
    """Return the request of each pod. Every listed pod needs one, as upstream has it."""
    adds_overhead = rules.minor < 38
    if not container and not adds_overhead:
        try:
            return {pod.name: pod.requests[resource] for pod in pods}
        except KeyError:
            # A pod has no containers, or a request is missing. Which one is named must not depend on the order.
            pods = tuple(sorted(pods, key=lambda pod: pod.name))
    try:
        return {pod.name: pod.request_of(resource, container, adds_overhead=adds_overhead) for pod in pods}
    except MissingRequestError as error:
        raise Misconfigured(str(error)) from error
