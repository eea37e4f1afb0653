"""What the pods used when they were last measured, for metrics.k8s.io; and who used too much memory."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from trimtab.lab.controllers.base.kinds import RunPod
from trimtab.lab.load.pods import Member, RunningContainer
from trimtab.lab.load.usage import PodUse, Use
from trimtab.lab.metrics.usage import UsageSample
from trimtab.model.quantity import Quantity


class UsageSamples:
    """The latest measurement of each pod; a source of usage for the lab's API server.

    Taking one is done for every pod all day long, so what only readers need is worked out when they come.
    """

    def __init__(self, window: float) -> None:
        self._window = timedelta(seconds=window)
        self._taken: datetime | None = None
        self._members: list[Member] = []
        self._uses: Mapping[str, PodUse] = {}
        self._by_name: dict[tuple[str, str], Member] | None = None

    def take(self, members: list[Member], uses: Mapping[str, PodUse], now: datetime) -> dict[str, list[str]]:
        """Keep what the pods use now; return the containers over their memory limit, by uid of the pod."""
        self._taken, self._members, self._uses = now, members, uses
        self._by_name = None
        killed: dict[str, list[str]] = {}
        for member in members:
            for container in member.containers:
                limit = container.memory_limit
                if limit is not None and uses[member.uid][container.name].memory_bytes > limit:
                    killed.setdefault(member.uid, []).append(container.name)
        return killed

    def memory(self, pod: RunPod) -> dict[str, int]:
        """Return the bytes that the containers of a pod used when last measured."""
        use = self._uses.get(pod.metadata.uid, {})
        return {name: one.memory_bytes for name, one in use.items()}

    def pod_usage(self, namespace: str, name: str, _now: datetime) -> UsageSample | None:
        """Return the usage of each container of a pod, or None when there is no sample."""
        if self._by_name is None:
            self._by_name = {
                (one.pod.metadata.namespace, one.pod.metadata.name): one for one in self._members
            }
        member = self._by_name.get((namespace, name))
        if member is None or self._taken is None:
            return None
        used = {container: _quantities(one) for container, one in self._within_limits(member)}
        return UsageSample(used, self._taken, self._window)

    def node_usage(self, name: str, _now: datetime) -> UsageSample | None:
        """Return the usage of a node: that of its pods."""
        if self._taken is None:
            return None
        here = [member for member in self._members if member.pod.spec.node_name == name]
        uses = [use for member in here for _, use in self._within_limits(member)]
        total = Use(sum(one.cpu_millicores for one in uses), sum(one.memory_bytes for one in uses))
        return UsageSample({"": _quantities(total)}, self._taken, self._window)

    def _within_limits(self, member: Member) -> Iterator[tuple[str, Use]]:
        use = self._uses[member.uid]
        for container in member.containers:
            yield container.name, _within(container, use[container.name])


def _within(container: RunningContainer, use: Use) -> Use:
    """Return what a container can really use: more CPU than its limit is not given to it."""
    cpu, memory = use
    if container.cpu_limit is not None and cpu > container.cpu_limit:
        cpu = container.cpu_limit
    if container.memory_limit is not None and memory > container.memory_limit:
        memory = container.memory_limit
    return Use(cpu, memory)


def _quantities(use: Use) -> dict[str, str]:
    # Whole kibibytes, as the kubelet's summaries make them appear through metrics-server.
    memory = Quantity.from_int(-(-use.memory_bytes // 1024) * 1024, "BinarySI")
    return {"cpu": str(Quantity.from_milli(use.cpu_millicores)), "memory": str(memory)}
