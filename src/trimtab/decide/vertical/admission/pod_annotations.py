"""What a container asked for before admission or a resize changed it, kept on the pod.

The API server may call a webhook again after another one changed the pod, and a pod may be resized hundreds of times.
Limits follow requests by their ratio, so computing from values we ourselves wrote would drift by what rounding adds or
drops. The originals make every size a function of what the user wrote.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.decide.vertical.update.disruption_budget import BOOST_PREFIX
from trimtab.model.core.pod import CPU, Container, Pod, PodStatus, ResourceList, ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.labels.names import dns1123_label_problems

ORIGINALS_ANNOTATION = "trimtab.dev/original-resources"


class _Change(wire.Wire):
    """A container's resources before and after admission."""

    before: ResourceRequirements = ResourceRequirements()
    after: ResourceRequirements = ResourceRequirements()


def _restored(
    change: _Change, own: ResourceRequirements, boosted: Collection[str] = ()
) -> ResourceRequirements:
    """Return resources without what we gave of them.

    A resource of which another webhook has set the request or the limit since is the user's as it stands, since limits
    keep their ratio. Not so the request of a boosted one: taken for the user's it would be boosted again, and stay.
    """
    requests = _taken_back(change.before.requests, change.after.requests, own.requests)
    limits = _taken_back(change.before.limits, change.after.limits, own.limits)
    for resource in {*own.requests, *own.limits}:
        is_ours = all(
            given.get(resource) == found.get(resource)
            for given, found in ((change.after.requests, own.requests), (change.after.limits, own.limits))
        )
        request, limit = requests.get(resource), limits.get(resource)
        is_valid = request is None or limit is None or request <= limit
        if is_ours or (resource in boosted and is_valid):
            continue
        for amounts, found in ((requests, own.requests), (limits, own.limits)):
            amounts.pop(resource, None)
            if resource in found:
                amounts[resource] = found[resource]
    return msgspec.structs.replace(own, requests=requests, limits=limits)


def _taken_back(before: ResourceList, after: ResourceList, own: ResourceList) -> ResourceList:
    ours = {name for name, amount in own.items() if after.get(name) == amount != before.get(name)}
    return {
        name: before[name] if name in ours else amount
        for name, amount in own.items()
        if name in before or name not in ours
    }


def _boosted(pod: Pod, container: Container) -> tuple[str, ...]:
    return (CPU,) if BOOST_PREFIX + container.name in pod.metadata.annotations else ()


@dataclass(frozen=True)
class Originals:
    """The changes that an earlier admission of the same pod made, by container."""

    changed: Mapping[str, _Change] = field(default_factory=dict)

    @staticmethod
    def read(pod: Pod) -> "Originals":
        """Read the annotation; one that is absent or illegible means that nothing was changed."""
        value = pod.metadata.annotations.get(ORIGINALS_ANNOTATION)
        if value is None:
            return Originals()
        try:
            return Originals(wire.decode(value, dict[str, _Change]))
        except wire.WireError:
            return Originals()

    def restored(self, pod: Pod) -> Pod:
        """Return the pod as the user wrote it, where its containers still have what we gave them."""
        containers = tuple(
            msgspec.structs.replace(
                container, resources=_restored(change, container.resources, _boosted(pod, container))
            )
            if (change := self.changed.get(container.name)) is not None
            else container
            for container in pod.spec.containers
        )
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=containers))

    def template(self, pod: Pod) -> Pod:
        """Return a running pod as the user wrote it, whatever its containers were resized to since."""
        containers = tuple(
            msgspec.structs.replace(container, resources=change.before)
            if (change := self.changed.get(container.name)) is not None
            else container
            for container in pod.spec.containers
        )
        spec = msgspec.structs.replace(pod.spec, containers=containers)
        return msgspec.structs.replace(pod, spec=spec, status=PodStatus())

    def kept(self, pod: Pod, resized: Collection[str]) -> str | None:
        """Return the annotation that a resize of these containers needs; None if the pod has it already."""
        missing = {
            container.name: _Change(before=container.resources, after=container.resources)
            for container in pod.spec.containers
            if container.name in resized and container.name not in self.changed
        }
        return wire.encode({**self.changed, **missing}).decode() if missing else None

    @staticmethod
    def written(pod: Pod, given: Mapping[int, ContainerResources]) -> str:
        """Return the annotation for a pod (as the user wrote it) whose containers are given these resources."""
        changed: dict[str, _Change] = {}
        for index, resources in sorted(given.items()):
            container = pod.spec.containers[index]
            before = container.resources
            after = msgspec.structs.replace(
                before,
                requests={**before.requests, **resources.requests},
                limits={**before.limits, **resources.limits},
            )
            changed[container.name] = _Change(before=before, after=after)
        return wire.encode(changed).decode()


ANNOTATION = "vpaObservedContainers"
_SEPARATOR = ", "


class ObservedContainersError(ValueError):
    """The annotation names something that cannot be a container."""


def format_observed(names: tuple[str, ...]) -> str:
    """Return the annotation's value for these containers."""
    return _SEPARATOR.join(names)


def parse_observed(value: str) -> tuple[str, ...]:
    """Return the containers that the annotation's value names."""
    if not value:
        return ()
    names = tuple(value.split(_SEPARATOR))
    for name in names:
        if problems := dns1123_label_problems(name):
            raise ObservedContainersError(
                f"incorrect format: {name} is not a valid container name: [{' '.join(problems)}]"
            )
    return names


def observed_containers(pod: Pod) -> frozenset[str] | None:
    """Return the containers seen at admission; None if the pod does not say, or says it illegibly."""
    value = pod.metadata.annotations.get(ANNOTATION)
    if value is None:
        return None
    try:
        return frozenset(parse_observed(value))
    except ObservedContainersError:
        return None
