"""Creates Leases that are deleted together with the installation.

The owner of such a Lease is the ServiceAccount of this process, so that the garbage collector deletes the Lease after the account.
"""

from typing import Final, TypeVar

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.resource import Json, Resource

_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", Json)
_PREFIX: Final = "system:serviceaccount:"
T = TypeVar("T")


async def create_lease(client: Client, leases: Resource[T], body: Json, namespace: str) -> T:
    """Create a Lease, owned by the account of this process if the account is in the same namespace."""
    owners = await _owners(client, namespace)
    if owners:
        owned = {**body, "metadata": {**body["metadata"], "ownerReferences": owners}}
        try:
            return await client.create(leases, owned, namespace)
        except errors.Forbidden:
            # OwnerReferencesPermissionEnforcement wants the right to delete Leases, which no account has.
            pass
    return await client.create(leases, body, namespace)


async def _owners(client: Client, namespace: str) -> list[Json]:
    """Return a reference to the account that the API server sees. A token file may be of another cluster."""
    body = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind}
    try:
        review = await client.create(_REVIEWS, body)
    except errors.ClusterError:
        return []
    user = (review.get("status") or {}).get("userInfo") or {}
    place, _, name = str(user.get("username", "")).removeprefix(_PREFIX).partition(":")
    if not str(user.get("username", "")).startswith(_PREFIX) or place != namespace or not user.get("uid"):
        return []
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "uid": user["uid"]}]
