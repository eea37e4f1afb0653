"""Whether what `explain` prints about an HPA is true, by the objects and the usage in the cluster.

Nothing here knows how an explanation is made. Each line is taken apart by its words, and each number in it is reckoned
again from what the API server and the metrics APIs answer. A line that is not understood is an error.
"""

import json
import math
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trimtab.cluster.transport import Request
from trimtab.model.quantity import Quantity
from trimtab.model.times import parse_duration, parse_time

UP_TO = 1e-9
STALE = 100
"""Seconds after which a sample may be refused for its age: 120, less what passes while we look."""


@dataclass(frozen=True)
class World:
    """One HPA and everything around it, as JSON."""

    now: datetime
    hpa: Any
    replicas: int
    running: int
    """Replicas by the status of the target, which averages are divided by."""
    pods: Any
    owned: set[str]
    """Names of the pods that the target owns, by the owner references."""
    usage: dict[str, int]
    """Milli-cores of each pod whose sample counts."""
    sampled: set[str]
    """Names of the pods that have a sample at all."""
    age: float
    """Seconds since the newest sample was taken."""
    total: Any
    """The value of the Object or External metric."""
    version: int
    """The resourceVersion of the target."""
    before: list[tuple[float, int, int]]
    """Earlier looks: the moment, what was asked for by these same formulas, and the replicas."""

    def is_like(self, other):
        """Return whether nothing changed between two looks; the operator may have scaled meanwhile."""
        return (self.usage, self.total, self.pods, self.sampled) == (
            other.usage,
            other.total,
            other.pods,
            other.sampled,
        )

    @property
    def spec(self):
        return self.hpa["spec"]

    @property
    def metric(self):
        (metric,) = self.spec["metrics"]
        return metric

    @property
    def counted(self):
        by_owner = self.spec.get("selectionStrategy") == "OwnerReference"
        return [pod for pod in self.pods if not by_owner or name(pod) in self.owned]

    @property
    def tolerance(self):
        up = self.spec.get("behavior", {}).get("scaleUp", {}).get("tolerance", "0.1")
        return float(Quantity.parse(str(up)).as_float()), 0.1

    @property
    def window(self):
        return self.spec.get("behavior", {}).get("scaleDown", {}).get("stabilizationWindowSeconds", 300)

    @property
    def target(self):
        """Return the target: percent of requests, or thousandths per pod."""
        if self.metric["type"] == "Resource":
            return self.metric["resource"]["target"]["averageUtilization"]
        return milli(self._source["target"]["averageValue"])

    @property
    def _source(self):
        return self.metric[self.metric["type"].lower()]

    @property
    def label(self):
        if self.metric["type"] == "Resource":
            return self.metric["resource"]["name"]
        labels = self._source["metric"]["selector"]["matchLabels"]
        inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        return f"{self._source['metric']['name']}{{{inside}}}"

    def measured(self, pods=None):
        """Return the pods whose samples count: they run, are ready and have one."""
        return [pod for pod in pods or self.counted if is_ready(pod) and name(pod) in self.usage]

    def value(self, pods=None):
        """Return what the metric is now: whole percent, or thousandths per pod."""
        if self.metric["type"] != "Resource":
            return math.ceil(self.total * 1000 / self.running) if self.running else round(self.total * 1000)
        found = self.measured(pods)
        used, requested = sum(self.usage[name(pod)] for pod in found), sum(request(pod) for pod in found)
        return math.floor(used * 100 / requested + UP_TO)

    def asks(self, value=None, pods=None):
        """Return the replicas that a value asks for, by the formula of the Kubernetes documentation."""
        if self.metric["type"] != "Resource":
            total = self.total * 1000 if value is None else value * max(self.running, 1)
            ratio = total / (self.target * self.running) if self.running else math.inf
            if total == 0 or not self.replicas or not self._covers(ratio):
                return math.ceil(total / self.target - UP_TO)
            return self.replicas
        ratio = self._ratio(value, pods)
        found, everyone = len(self.measured(pods)), pods or self.counted
        idle = len(everyone) - found
        if ratio > 1 and idle:  # pods that are not measured yet count as idle when growing
            ratio, found = ratio * found / (found + idle), found + idle
            ratio = math.floor(ratio * self.target + UP_TO) / self.target
        missing = len(self.missing(everyone))
        if ratio < 1 and missing:  # and those without a sample as fully used when shrinking
            used = ratio * self.target * found + max(100, self.target) * missing
            found += missing
            ratio = math.floor(used / found + UP_TO) / self.target
        wanted = self.replicas if self._covers(ratio) else math.ceil(ratio * found - UP_TO)
        # Pods that are guessed at never turn the direction round.
        is_guess = idle and (ratio > 1) != (self._ratio(value, pods) > 1)
        is_against = idle and (wanted - self.replicas) * (ratio - 1) < 0
        return self.replicas if is_guess or is_against else wanted

    def _ratio(self, value, pods):
        return (self.value(pods) if value is None else value) / self.target

    def missing(self, pods=None):
        """Return the pods that run and have no sample."""
        return [pod for pod in pods or self.counted if is_running(pod) and name(pod) not in self.sampled]

    def _covers(self, ratio):
        up, down = self.tolerance
        return 1 - down - UP_TO <= ratio <= 1 + up + UP_TO


async def look(client, key, now, before):
    """Read the world around an HPA from the API server."""
    namespace, hpa_name = key
    hpa = await fetch(
        client, f"/apis/autoscaling.trimtab.dev/v2/namespaces/{namespace}/horizontalpodautoscalers/{hpa_name}"
    )
    target = hpa["spec"]["scaleTargetRef"]["name"]
    deployment = await fetch(client, f"/apis/apps/v1/namespaces/{namespace}/deployments/{target}")
    labels = deployment["spec"]["selector"]["matchLabels"]
    pods = (await fetch(client, f"/api/v1/namespaces/{namespace}/pods"))["items"]
    sets = (await fetch(client, f"/apis/apps/v1/namespaces/{namespace}/replicasets"))["items"]
    ours = {one["metadata"]["uid"] for one in sets if owner_uids(one) & {deployment["metadata"]["uid"]}}
    metrics = (await fetch(client, f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"))["items"]
    matched = [pod for pod in pods if labels.items() <= pod["metadata"]["labels"].items()]
    settled = {name(pod): pod for pod in matched if is_ready(pod)}
    usage = {
        name(one): sum(milli(each["usage"]["cpu"]) for each in one["containers"])
        for one in metrics
        if name(one) in settled and counts(one, settled[name(one)], now)
    }
    return World(
        now=now,
        hpa=hpa,
        replicas=deployment["spec"]["replicas"],
        running=deployment["status"].get("replicas", 0),
        pods=matched,
        owned={name(pod) for pod in matched if owner_uids(pod) & ours},
        usage=usage,
        sampled={name(one) for one in metrics},
        age=min((now - parse_time(one["timestamp"])).total_seconds() for one in metrics)
        if metrics
        else math.inf,
        total=await total_of(client, namespace, hpa["spec"]["metrics"][0]),
        version=int(deployment["metadata"]["resourceVersion"]),
        before=before,
    )


async def total_of(client, namespace, metric):
    """Return the value of an Object or External metric, summed over its series."""
    source = metric.get("external") or metric.get("object")
    if source is None:
        return None
    labels = ",".join(f"{key}={value}" for key, value in source["metric"]["selector"]["matchLabels"].items())
    query = source["metric"]["name"]
    if "external" in metric:
        answer = await fetch(
            client,
            f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{query}",
            labelSelector=labels,
        )
    else:
        plural = f"{source['describedObject']['kind'].lower()}s.apps"
        path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/{plural}/{source['describedObject']['name']}/{query}"
        answer = await fetch(client, path, metricLabelSelector=labels)
    return sum(milli(item["value"]) for item in answer["items"]) / 1000


async def fetch(client, path, **query):
    answer = await client.sender.send_once(f"reading {path}", Request("GET", path, list(query.items())))
    return json.loads(answer.body)


def name(obj):
    return obj["metadata"]["name"]


def owner_uids(obj):
    return {one["uid"] for one in obj["metadata"].get("ownerReferences", ())}


def is_running(pod):
    return pod["status"].get("phase") == "Running"


def is_ready(pod):
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    return is_running(pod) and conditions.get("Ready") == "True"


def counts(sample, pod, now):
    """Return whether a CPU sample counts: a young pod's only once a whole window was measured since it was ready."""
    started = parse_time(pod["status"]["startTime"])
    if (now - started).total_seconds() > 300:
        return True
    ready = next(one for one in pod["status"]["conditions"] if one["type"] == "Ready")
    window = parse_duration(sample["window"])
    return parse_time(sample["timestamp"]) >= parse_time(ready["lastTransitionTime"]) + window


def request(pod):
    return sum(milli(one["resources"]["requests"]["cpu"]) for one in pod["spec"]["containers"])


def milli(text):
    return Quantity.parse(str(text)).milli_value()


class Lines:
    """The lines of one explanation, checked one by one."""

    def __init__(self, world, text):
        self.world = world
        self.lines = text.splitlines()

    def check(self):
        """Check every line; raise AssertionError with the line that is not true."""
        first, *rest = self.lines
        self._summary(first)
        for line in rest:
            kind, _, text = line.partition(": ")
            check = getattr(self, f"_{kind.replace(' ', '_')}", None)
            assert check is not None, f"not understood: {line}"
            try:
                check(text)
            except AssertionError as error:
                raise AssertionError(f"not true: {line}\n{error}") from error

    def _summary(self, line):
        world = self.world
        found = re.fullmatch(r"(\w+): (stays at|scales from) (\d+)(?: to (\d+))?: (.*)", line)
        assert found, f"not understood: {line}"
        verdict, verb, before, after, why = found.groups()
        asked = world.asks()
        if verb == "scales from":
            assert world.replicas == int(before), line
            self._why(verdict, why)
            grows = int(after) > int(before)
            assert grows == (verdict == "ScalesUp"), line
            assert (asked > world.replicas) == grows, line
            assert int(after) == self._allowed(asked), line
            return
        assert int(before) == world.replicas, line
        is_true = {
            "AtMaximum": asked > world.replicas == world.spec["maxReplicas"],
            "AtMinimum": asked < world.replicas == world.spec["minReplicas"],
            "WithinTolerance": asked == world.replicas,
            "WithinToleranceOnceGapsAreFilled": asked == world.replicas and self._unmeasured() > 0,
            "AsManyAsNeeded": asked == world.replicas,
            # At 60x a machine that is busy for two seconds leaves samples too old to be believed.
            "MetricsFailed": world.age > STALE,
            "IdleAtZero": world.replicas == 0 == world.total,
            "HeldByScaleUpRate": asked > world.replicas and self._is_at_rate(),
            "HeldByScaleDownWindow": asked < world.replicas <= max(self._asked_within_window()),
        }
        assert is_true.get(verdict), f"not true: {line} (asks for {asked})\n{self.lines}"
        extra = re.search(r"the selector counts (\d+) pods? more than the target has", why)
        if extra:
            assert int(extra[1]) == len(world.counted) - world.replicas, line

    def _why(self, verdict, why):
        """Check why the replicas change: upstream's words where they are true, else what the pods need."""
        world, value, target = self.world, self.world.value(), self.world.target
        needs = re.match(r".* needs? (\d+) replicas? at the target of (.+), and (\d+) (?:is|are) set", why)
        if why == f"{world.label} above target":
            assert (verdict, value > target) == ("ScalesUp", True)
        elif why == "All metrics below target":
            assert (verdict, value < target) == ("ScalesDown", True)
        elif why.endswith(": any load wakes it"):
            assert (verdict, world.replicas, world.total > 0) == ("ScalesUp", 0, True)
            assert amount(
                why.removeprefix(f"{world.label} is ").removesuffix(" in all: any load wakes it")
            ) == round(world.total * 1000)
        else:
            assert needs, f"not understood: {why}"
            assert (int(needs[1]), amount(needs[2]), int(needs[3])) == (world.asks(), target, world.replicas)

    def _allowed(self, asked):
        """Return how far one sync may go: twice as many or 4 up, and never beyond the bounds."""
        world = self.world
        rate = max(2 * world.replicas, world.replicas + 4 if "behavior" in world.spec else 4)
        return max(min(asked, rate, world.spec["maxReplicas"]), world.spec["minReplicas"])

    def _since(self, seconds):
        """Return the looks of the last seconds; the one before them stands for what lies between two looks."""
        since = self.world.now.timestamp() - seconds
        late = [one for one in self.world.before if one[0] >= since]
        return self.world.before[-len(late) - 1 :] if late else self.world.before[-1:]

    def _asked_within_window(self):
        return [asked for _, asked, _ in self._since(self.world.window)] or [-1]

    def _is_at_rate(self):
        """Return whether 4 pods were added, or their number doubled, within the 15 seconds of the default policies."""
        least = min((replicas for _, _, replicas in self._since(15)), default=self.world.replicas)
        return self.world.replicas >= min(least + 4, max(least, 1) * 2) > least

    def _pods(self, text):
        world = self.world
        strategy = world.spec.get("selectionStrategy", "LabelSelector")
        count, *rest = text.split(", ")
        assert count == f"{len(world.counted)} counted by {strategy}"
        foreign = [pod for pod in world.pods if name(pod) not in world.owned]
        whose = {name(pod): f"it belongs to {owner(pod)}" for pod in foreign}
        for part in rest:
            left_out = re.fullmatch(r"(\d+) (?:left out|not its own) \(([^:]+): (.*)\)", part)
            more = re.fullmatch(r"(\d+) more than the target has", part)
            if left_out:
                assert (int(left_out[1]), left_out[3]) == (len(foreign), whose[left_out[2]])
            else:
                assert more, part
                assert int(more[1]) == len(world.counted) - world.replicas
        assert bool(foreign) == bool(rest)

    def _metric(self, text):
        world = self.world
        if text.startswith(f"{world.label} failed: "):
            assert world.age > STALE
            assert "old" in text
            return
        head, *tail = text.split("; ")
        found = re.fullmatch(r"(.+) is (.+), target (.+), asks for (\d+) \(wins\)", head)
        assert found, text
        assert found[1] == world.label
        assert amount(found[2].partition(" (")[0]) == world.value()
        if " (" in found[2]:
            assert amount(found[2].partition(" (")[2].removesuffix(" in all)")) == round(world.total * 1000)
        assert amount(found[3]) == world.target
        assert int(found[4]) == world.asks()
        for part in tail:
            if part.startswith("asks for "):
                self._edges(part.removeprefix("asks for "))
            else:
                self._notes(part)

    def _unmeasured(self):
        return len(self.world.counted) - len(self.world.measured())

    def _notes(self, text):
        missing = len(self.world.missing())
        for note in text.split(", "):
            if note == "every sample is zero":
                assert self.world.value() == 0
            elif note.endswith(" unready"):
                assert int(note.split()[0]) == self._unmeasured() - missing
            elif note.endswith(" without a sample"):
                assert int(note.split()[0]) == missing
            elif found := re.fullmatch(r"(more|fewer) replicas also above (.+) up to (.+)", note):
                asked = [self.world.asks(amount(found[2]) + 1), self.world.asks(amount(found[3]))]
                assert all((one > self.world.replicas) == (found[1] == "more") for one in asked), note
                assert self.world.replicas not in asked, note
            else:
                assert re.fullmatch(r"ratio [\d.]+ once gaps are filled", note), note

    def _edges(self, text):
        for part in text.split(", "):
            if part.startswith("more above "):
                self._more(amount(part.removeprefix("more above ")))
            else:
                self._fewer(part.removeprefix("fewer "))

    def _more(self, edge):
        assert self.world.asks(edge + self._step()) > self.world.replicas
        assert self.world.asks(edge) <= self.world.replicas

    def _fewer(self, text):
        world = self.world
        if text.startswith("below "):
            edge = amount(text.removeprefix("below "))
            inside, outside = edge - 1, edge
        else:
            inside = amount(text.removeprefix("at ").removesuffix(" or less"))
            outside = inside + 1
        assert world.asks(inside) < world.replicas <= max(world.asks(outside), world.asks(outside + 1))

    def _step(self):
        # The sum over pods that are not measured yet is cut to whole percents: one more decides, or two.
        return 1 if self.world.metric["type"] != "Resource" else 2

    def _partly(self, text):
        found = re.match(r"the metrics ask for (\d+), but ", text)
        assert found, text
        assert int(found[1]) == self.world.asks()

    def _written_by(self, text):
        found = re.fullmatch(r"trimtab(?:, lease transition \d+)?, based on version (\d+)", text)
        assert found, f"not understood: {text}"
        assert int(found[1]) <= self.world.version

    def _limit(self, text):
        if text == "4 pods per 15 s":
            assert "behavior" in self.world.spec
            return
        found = re.fullmatch(r"at most (\d+) in one sync", text)
        assert found, text
        assert int(found[1]) == max(2 * self.world.replicas, 4)

    def _next(self, text):
        for part in text.split("; or "):
            for each in [part] if " replicas when " in part else part.split(", and "):
                self._next_part(each)

    def _next_part(self, part):
        world = self.world
        if part == "raise maxReplicas":
            assert world.replicas == world.spec["maxReplicas"] < world.asks()
        elif part == "lower minReplicas":
            assert world.replicas == world.spec["minReplicas"] > world.asks()
        elif part == "the new pods become ready and are measured":
            assert self.lines[0].startswith("ScalesUp: ")
        elif part.startswith("make this metric readable: "):
            assert world.age > STALE
        elif part == "the missing samples must come":
            assert self._unmeasured() > 0
        elif part == "the remaining pods are measured":
            assert self.lines[0].startswith("ScalesDown: ")
            assert " to 0: " not in self.lines[0]
        elif part == "the autoscaler wakes it when a metric asks for a pod":
            assert " to 0: " in self.lines[0]
        elif part.startswith("set selectionStrategy"):
            self._by_owner(part)
        elif part.startswith("the scale-up policies allow more from "):
            self._allowed_from(part)
        elif part.startswith("the metrics must ask for fewer than "):
            self._until(part)
        else:
            self._when(part)

    def _by_owner(self, part):
        world = self.world
        form = (
            r"set selectionStrategy to OwnerReference, because (\d+) counted pods? (?:is|are) not the target's own"
            r"(?:; the metrics then ask for (\d+))?"
        )
        found = re.fullmatch(form, part)
        assert found, part
        own = [pod for pod in world.pods if name(pod) in world.owned]
        assert int(found[1]) == len(world.counted) - len(own)
        if found[2]:
            assert int(found[2]) == world.asks(pods=own)

    def _until(self, part):
        world = self.world
        found = re.fullmatch(r"the metrics must ask for fewer than (\d+) until (\S+)", part)
        assert found, part
        assert int(found[1]) == world.replicas
        until = moment(found[2])
        assert until > world.now.timestamp() - 1
        # The last look at which as many were asked for, the next one, and a sync between them.
        earlier = [at for at, asked, _ in world.before if asked >= world.replicas]
        later = [at for at, _, _ in world.before if not earlier or at > earlier[-1]]
        assert earlier[-1] - 20 <= until - world.window <= (later or [world.now.timestamp()])[0] + 20

    def _allowed_from(self, part):
        until = moment(part.rpartition(" ")[2])
        assert -1 <= until - self.world.now.timestamp() <= 15
        assert self._is_at_rate()

    def _beside(self, part, direction):
        if part.startswith("the scaling policies allow it, from "):
            self._allowed_from(part)
            return
        word, bound = ("raised", "maxReplicas") if direction == "more" else ("lowered", "minReplicas")
        assert part == f"{bound} is {word}"
        assert self.world.replicas == self.world.spec[bound]

    def _when(self, part):
        world = self.world
        found = re.fullmatch(r"(more|fewer) replicas when (.+?) is (above|below|at) (.+)", part)
        assert found, part
        direction, label, word, rest = found.groups()
        assert label == world.label
        rest, _, beside = rest.partition(", and ")
        rest, _, stays = rest.partition(" and stays so for ")
        if stays:
            assert stays == f"{world.window} s"
        for each in beside.split(", and ") if beside else ():
            self._beside(each, direction)
        if direction == "more":
            self._more(amount(rest))
        else:
            self._fewer(f"{word} {rest}")


def moment(text):
    return parse_time(text).timestamp()


def owner(pod):
    (found,) = pod["metadata"]["ownerReferences"]
    return f"{found['kind']}/{found['name']}"


def amount(text):
    """Return a number as explanations write it: percent as it is, anything else in thousandths."""
    text = text.removesuffix(" per pod").removesuffix(" in all")
    if text.endswith(" %"):
        return int(text.removesuffix(" %"))
    return round(float(text) * 1000)
