"""What a container asked for before admission or a resize changed it, kept on the pod.

The API server may call a webhook again after another one changed the pod, and a pod may be resized hundreds of times.
Limits follow requests by their ratio, so computing from values we ourselves wrote would drift by what rounding adds or
drops. The originals make every size a function of what the user wrote.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.decide.vertical.sizes import ContainerResources
from trimtab.model import wire
from trimtab.model.pod import Container, Pod, PodStatus
from trimtab.model.resources import ResourceRequirements

ORIGINALS_ANNOTATION = "trimtab.dev/original-resources"


class _Change(wire.Wire):
    """A container's resources before and after admission."""

    before: ResourceRequirements = ResourceRequirements()
    after: ResourceRequirements = ResourceRequirements()


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
        containers = tuple(self._restored(container) for container in pod.spec.containers)
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=containers))

    def _restored(self, container: Container) -> Container:
        change = self.changed.get(container.name)
        if change is None or change.after != container.resources:
            return container
        return msgspec.structs.replace(container, resources=change.before)

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
