"""The objects that owner references name, as they were looked up, and the workload that an HPA scales."""

from trimtab.model.core.meta import OwnerReference, group_of
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.json.wire import Wire


class Owner(Wire, tag="owner"):
    """An object that owns pods, with its own owners."""

    uid: str
    kind: str = ""
    name: str = ""
    owners: tuple[OwnerReference, ...] = ()


class OwnerNotFound(Wire, tag="notFound"):
    """The referenced object does not exist (any more), so the chain of owners ends there."""

    reason: str = "it no longer exists"


class OwnerUnavailable(Wire, tag="unavailable"):
    """The object could not be read, so its owners are unknown."""

    error: str
    permission: str = ""
    """The permission that is missing, such as `get replicasets.apps`; empty if that is not the cause."""

    def __str__(self) -> str:
        return f"{self.error}; the right to {self.permission} is missing" if self.permission else self.error


OwnerLookup = Owner | OwnerNotFound | OwnerUnavailable


class Target(Wire):
    """The workload that an HPA scales."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""

    def is_named_by(self, reference: OwnerReference) -> bool:
        """Return whether a reference names this workload, by uid or else by name.

        Versions of the API do not matter, nor does a missing group on either side of an old object.
        """
        if self.uid and reference.uid:
            return self.uid == reference.uid
        same_group = group_of(self.api_version) == reference.group or not self.api_version
        return same_group and self.kind == reference.kind and self.name == reference.name


class ConflictingHpa(Wire):
    """Another HPA of the namespace whose selector may match the same pods."""

    key: str
    selector: str
    strategy: str = SelectionStrategy.LABEL_SELECTOR
    target: Target = Target()


def owner_key(reference: OwnerReference) -> str:
    """Return the key under which the result of an owner lookup is stored.

    It holds everything that the reference claims, because a pod can name an owner falsely.
    """
    return f"{reference.group}/{reference.kind}/{reference.name}/{reference.uid}"


def found_owner(reference: OwnerReference, owner: Owner | None) -> Owner | OwnerNotFound:
    """Return the result of a lookup by name, whose uid must match."""
    if owner is None:
        return OwnerNotFound()
    if reference.uid and owner.uid != reference.uid:
        return OwnerNotFound(reason="another object has taken its name")
    return owner
