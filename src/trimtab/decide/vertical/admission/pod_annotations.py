"""Annotations on pods: original resources, observed containers, and the names of startup boosts.

The API server may call a webhook again after another webhook changed the pod, and a pod may be resized hundreds of
times. Limits follow requests by their ratio, so computing from values that Trimtab wrote would accumulate rounding.
The original resources make every size a function of what the user wrote.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.model.core.pod import CPU, Container, Pod, PodStatus, ResourceList, ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.labels.names import dns1123_label_problems

ORIGINALS_ANNOTATION = "trimtab.dev/original-resources"
OBSERVED_CONTAINERS_ANNOTATION = "vpaObservedContainers"
BOOST_PREFIX = "vpaCpuStartupBoost/"
"""Followed by the name of a boosted container; the value holds its resources without the boost."""
_SEPARATOR = ", "


class _Change(wire.Wire):
    """A container's resources before and after admission."""

    before: ResourceRequirements = ResourceRequirements()
    after: ResourceRequirements = ResourceRequirements()


@dataclass(frozen=True)
class OriginalResources:
    """The changes that an earlier admission or resize of the same pod made, by container."""

    changed: Mapping[str, _Change] = field(default_factory=dict)

    @staticmethod
    def read(pod: Pod) -> "OriginalResources":
        """Read the annotation.

        An absent or malformed one means that nothing was changed.
        """
        value = pod.metadata.annotations.get(ORIGINALS_ANNOTATION)
        if value is None:
            return OriginalResources()
        try:
            return OriginalResources(wire.decode(value, dict[str, _Change]))
        except wire.WireError:
            return OriginalResources()

    def restore(self, pod: Pod) -> Pod:
        """Return the pod as the user wrote it, where its containers still have Trimtab's values."""
        return _with_containers(
            pod,
            tuple(
                msgspec.structs.replace(
                    container, resources=_restored(change, container.resources, _boosted(pod, container))
                )
                if (change := self.changed.get(container.name)) is not None
                else container
                for container in pod.spec.containers
            ),
        )

    def as_template(self, pod: Pod) -> Pod:
        """Return a running pod as the user wrote it, whatever its containers were resized to."""
        template = _with_containers(
            pod,
            tuple(
                msgspec.structs.replace(container, resources=change.before)
                if (change := self.changed.get(container.name)) is not None
                else container
                for container in pod.spec.containers
            ),
        )
        return msgspec.structs.replace(template, status=PodStatus())

    def annotation_for_resize(self, pod: Pod, resized: Collection[str]) -> str | None:
        """Return the annotation that a resize of these containers needs, or None if the pod has it."""
        missing = {
            container.name: _Change(before=container.resources, after=container.resources)
            for container in pod.spec.containers
            if container.name in resized and container.name not in self.changed
        }
        return wire.encode({**self.changed, **missing}).decode() if missing else None

    @staticmethod
    def annotation_for_admission(pod: Pod, given: Mapping[int, ContainerResources]) -> str:
        """Return the annotation for the user's pod whose containers are given these resources."""
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


def _restored(change: _Change, own: ResourceRequirements, boosted: Collection[str]) -> ResourceRequirements:
    """Return the container's resources without Trimtab's changes.

    Where another webhook has since set the request or the limit of a resource, both count as the user's, since limits
    keep their ratio. The exception is the request of a boosted resource: it would be boosted again, and stay.
    """
    requests = _without_change(change.before.requests, change.after.requests, own.requests)
    limits = _without_change(change.before.limits, change.after.limits, own.limits)
    for resource in {*own.requests, *own.limits}:
        is_unchanged = all(
            given.get(resource) == current.get(resource)
            for given, current in ((change.after.requests, own.requests), (change.after.limits, own.limits))
        )
        request, limit = requests.get(resource), limits.get(resource)
        is_valid = request is None or limit is None or request <= limit
        if is_unchanged or (resource in boosted and is_valid):
            continue
        for amounts, current in ((requests, own.requests), (limits, own.limits)):
            amounts.pop(resource, None)
            if resource in current:
                amounts[resource] = current[resource]
    return msgspec.structs.replace(own, requests=requests, limits=limits)


def _without_change(before: ResourceList, after: ResourceList, own: ResourceList) -> ResourceList:
    given = {name for name, amount in own.items() if after.get(name) == amount != before.get(name)}
    return {
        name: before[name] if name in given else amount
        for name, amount in own.items()
        if name in before or name not in given
    }


def _boosted(pod: Pod, container: Container) -> tuple[str, ...]:
    return (CPU,) if BOOST_PREFIX + container.name in pod.metadata.annotations else ()


def _with_containers(pod: Pod, containers: tuple[Container, ...]) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=containers))


class ObservedContainersError(ValueError):
    """The annotation has a name that cannot be a container's."""


def format_observed(names: tuple[str, ...]) -> str:
    """Return the value of the observed-containers annotation."""
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
    """Return the containers observed at admission, or None if the annotation is absent or malformed."""
    value = pod.metadata.annotations.get(OBSERVED_CONTAINERS_ANNOTATION)
    if value is None:
        return None
    try:
        return frozenset(parse_observed(value))
    except ObservedContainersError:
        return None
