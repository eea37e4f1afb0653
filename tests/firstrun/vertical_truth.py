"""Whether what `explain` prints about a VPA or a pod is true, by the objects and the usage in the cluster.

As in `truth`, each line is taken apart by its words and its numbers are reckoned again. A line that is not understood is
an error.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.firstrun.truth import fetch, milli, name
from trimtab.model.times import parse_time

MIB = 2**20
PODS = 3
MARGIN = 0.15
"""What the recommender adds to a percentile, by default."""
LEAST_MEMORY = 250
"""MiB that a pod is recommended at least, by default."""
_AMOUNTS = r"cpu (\S+), memory (\d+ MiB)"


@dataclass(frozen=True)
class Sizes:
    """The VPAs of a namespace, their target's pods, and the usage of each role so far."""

    now: datetime
    namespace: str
    vpas: dict[str, Any]
    scopes: dict[str, Any]
    checkpoints: Any
    pods: dict[str, Any]
    usage: dict[str, list[tuple[float, float]]]
    """By VPA: milli-cores and MiB of each pod that it applied to when it was looked at."""

    def vpa_of(self, pod):
        """Return the VPA that a pod belongs to: the one whose scope it matches, else the one without a scope."""
        labels = pod["metadata"]["labels"]
        for each in self.vpas.values():
            selector = self.selector(each)
            if selector and selector.items() <= labels.items():
                return name(each)
        return next(name(each) for each in self.vpas.values() if not self.selector(each))

    def selector(self, vpa):
        scope = vpa["spec"].get("vpaScope")
        return self.scopes[scope["name"]]["spec"]["podSelector"]["matchLabels"] if scope else {}

    def amounts(self, vpa, bound):
        """Return what the status of a VPA recommends: milli-cores and MiB."""
        (container,) = self.vpas[vpa]["status"]["recommendation"]["containerRecommendations"]
        return milli(container[bound]["cpu"]), milli(container[bound]["memory"]) / 1000 / MIB


async def look(client, namespace, now, usage):
    """Read the namespace from the API server, and note the usage of each pod under its VPA."""
    group = f"/apis/autoscaling.trimtab.dev/v1/namespaces/{namespace}"
    pods = (await fetch(client, f"/api/v1/namespaces/{namespace}/pods"))["items"]
    found = Sizes(
        now=now,
        namespace=namespace,
        vpas=by_name(await fetch(client, f"{group}/verticalpodautoscalers")),
        scopes=by_name(await fetch(client, f"{group}/vpascopes")),
        checkpoints=(await fetch(client, f"{group}/verticalpodautoscalercheckpoints"))["items"],
        pods={name(pod): pod for pod in pods},
        usage=usage,
    )
    samples = (await fetch(client, f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"))["items"]
    # While pods start the others have their share of the load: what one look sees then is no picture of it.
    for sample in samples if len(samples) == PODS else ():
        (container,) = sample["containers"]
        used = milli(container["usage"]["cpu"]), milli(container["usage"]["memory"]) / 1000 / MIB
        usage.setdefault(found.vpa_of(found.pods[name(sample)]), []).append(used)
    return found


def by_name(listed):
    return {name(one): one for one in listed["items"]}


class Lines:
    """The lines of one explanation of a VPA or a pod."""

    def __init__(self, sizes, text):
        self.sizes = sizes
        self.lines = text.splitlines()

    def check(self):
        """Check every line; raise AssertionError with the line that is not true."""
        kind, _, self.name = self.lines[0].partition(": ")[0].rpartition("/")
        forms: Any = _VPA if kind.startswith("VPA ") else _POD
        for line in self.lines:
            found = [(form, match) for form in forms if (match := re.fullmatch(form, line.strip()))]
            assert found, f"not understood: {line}"
            form, match = found[0]
            try:
                forms[form](self, *match.groups())
            except AssertionError as error:
                raise AssertionError(f"not true: {line}\n{error}") from error

    def vpa(self, mode, selector):
        vpa = self.sizes.vpas[self.name]
        assert mode == vpa["spec"]["updatePolicy"]["updateMode"]
        labels = ",".join(f"{key}={value}" for key, value in self.sizes.selector(vpa).items())
        assert selector == (f"pods with {labels}" if labels else "all pods of the target")

    def learns(self, pods):
        mine = [key for key, pod in sorted(self.sizes.pods.items()) if self.sizes.vpa_of(pod) == self.name]
        assert pods.split(", ") == [f"{self.sizes.namespace}/{key}" for key in mine]

    def learns_not(self, pod, why):
        theirs = self.sizes.vpa_of(self.sizes.pods[pod])
        assert theirs != self.name
        if why.startswith("labels do not match"):
            assert self.sizes.selector(self.sizes.vpas[self.name])
        else:
            assert (
                why
                == f"VPA {self.sizes.namespace}/{theirs} speaks for a part of the workload and precedes it"
            )

    def recommends(self, cpu, memory):
        self.amounts_are(self.sizes.amounts(self.name, "target"), cpu, memory)

    def amounts_are(self, expected, cpu, memory):
        assert abs(milli(cpu) - expected[0]) <= 1
        assert abs(int(memory.split()[0]) - expected[1]) <= 1

    def saved(self, at):
        mine = [one for one in self.sizes.checkpoints if one["spec"]["vpaObjectName"] == self.name]
        assert parse_time(at) in {parse_time(one["status"]["lastUpdateTime"]) for one in mine}

    def bound(self, resource, bound, amount, percent, most, rest):
        index = 0 if resource == "cpu" else 1
        used = [one[index] for one in self.sizes.usage[self.name]]
        limit = self.number(most)
        assert sum(one <= limit + 1 for one in used) >= len(used) * int(percent) / 100
        # And no more than a bucket of the histogram above what was used: 5 % wider each, the first 10m or 10 MB.
        assert limit <= max(used) * 1.15 + 12
        margin = re.search(r"margin (\S+(?: MiB)?)", rest)
        assert margin
        assert abs(self.number(margin[1].rstrip(",")) - limit * MARGIN) <= 1
        factor = re.search(r"x ([\d.]+) for (\d+) samples?", rest)
        if factor:
            self.samples(factor[2])
        raw = limit * (1 + MARGIN) * (float(factor[1]) if factor else 1.0)
        least = {"cpu": 25, "memory": LEAST_MEMORY}[resource]
        assert abs(self.number(amount) - max(raw, least)) <= max(raw, least) * 0.01 + 1.5
        if "raised to the pod's minimum" in rest:
            assert raw < least

    def number(self, text):
        return int(text.split()[0]) if text.endswith("MiB") else milli(text)

    def no_bound(self, number):
        self.samples(number)

    def samples(self, number):
        """Check a number of samples: one a minute and pod, for as long as the story runs."""
        pods = sum(self.sizes.vpa_of(pod) == self.name for pod in self.sizes.pods.values())
        started = min(parse_time(pod["metadata"]["creationTimestamp"]) for pod in self.sizes.pods.values())
        minutes = (self.sizes.now - started).total_seconds() / 60
        assert (minutes - 3) * pods * 0.7 <= int(number) <= (minutes + 1) * pods

    def pod(self, vpa, other):
        assert vpa == self.sizes.vpa_of(self.sizes.pods[self.name])
        if other:
            assert other in self.sizes.vpas
            assert self.sizes.selector(self.sizes.vpas[vpa])

    def lost(self, vpa, why):
        mine = self.sizes.vpa_of(self.sizes.pods[self.name])
        assert vpa != mine
        has_scope = bool(self.sizes.selector(self.sizes.vpas[vpa]))
        assert why.startswith("labels do not match" if has_scope else f"VPA {self.sizes.namespace}/{mine} ")

    def counts_for(self, vpa):
        assert vpa == self.sizes.vpa_of(self.sizes.pods[self.name])

    def requests(self, cpu, memory, new_cpu, new_memory):
        pod = self.sizes.pods[self.name]
        (container,) = pod["spec"]["containers"]
        asked = container["resources"]["requests"]
        self.amounts_are((milli(asked["cpu"]), milli(asked["memory"]) / 1000 / MIB), cpu, memory)
        self.amounts_are(self.sizes.amounts(self.sizes.vpa_of(pod), "target"), new_cpu, new_memory)

    def gets_nothing(self, _cpu, _memory):
        vpa = self.sizes.vpas[self.sizes.vpa_of(self.sizes.pods[self.name])]
        assert "recommendation" not in vpa.get("status", {})

    def is_within(self, slack):
        """Return whether the pod's requests are within the bounds, or off by no more than the slack."""
        pod = self.sizes.pods[self.name]
        vpa = self.sizes.vpa_of(pod)
        (container,) = pod["spec"]["containers"]
        asked = container["resources"]["requests"]
        amounts = milli(asked["cpu"]), milli(asked["memory"]) / 1000 / MIB
        low, high = self.sizes.amounts(vpa, "lowerBound"), self.sizes.amounts(vpa, "upperBound")
        return all(low[index] - slack <= amounts[index] <= high[index] + slack for index in (0, 1))

    def outside(self):
        assert not self.is_within(-1)

    def within(self, hours):
        assert self.is_within(1)
        pod = self.sizes.pods[self.name]
        age = self.sizes.now - parse_time(pod["metadata"]["creationTimestamp"])
        assert age.total_seconds() < int(hours) * 3600


_NAME = r"(?:[\w-]+)/([\w-]+)"
_VPA = {
    r"VPA \S+: mode (\w+), for (.+)": Lines.vpa,
    r"learns from (.+)": Lines.learns,
    rf"does not learn from {_NAME}: (.+)": Lines.learns_not,
    rf"recommends for \S+: {_AMOUNTS}": Lines.recommends,
    r"by its history as saved at (\S+):": Lines.saved,
    r"\S+ (?:cpu|memory) upper bound: no upper bound yet: (\d+) samples?": Lines.no_bound,
    r"\S+ (cpu|memory) (target|lower bound|upper bound): (\S+(?: MiB)?): (\d+) % of (?:CPU samples|memory peaks) "
    r"are at most (\S+(?: MiB)?), (.+)": Lines.bound,
}
_POD = {
    rf"pod \S+: controlled by {_NAME}: VPA \S+ (?:alone matches|precedes {_NAME})": Lines.pod,
    rf"{_NAME} does not control it: (.+)": Lines.lost,
    rf"its usage counts for {_NAME}": Lines.counts_for,
    rf"\S+: requests {_AMOUNTS}, would get {_AMOUNTS}": Lines.requests,
    rf"\S+: requests {_AMOUNTS}, would get nothing": Lines.gets_nothing,
    r"next update: resized: its requests are outside the recommended range": Lines.outside,
    r"next update: none: its requests are within the range and it is younger than (\d+) h": Lines.within,
}
