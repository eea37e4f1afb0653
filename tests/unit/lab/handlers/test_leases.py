"""Leases are locks: a write must say what it saw."""

import pytest

from tests.unit.lab.api import RefusedError, running

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def test_an_update_of_a_lease_must_name_its_version():
    async with running() as api:
        made = await api.create(LEASES, {"metadata": {"name": "lock"}, "spec": {"holderIdentity": "a"}})
        with pytest.raises(RefusedError, match="must be specified for an update"):
            await api.update(
                f"{LEASES}/lock", {"metadata": {"name": "lock"}, "spec": {"holderIdentity": "b"}}
            )
        made["spec"]["holderIdentity"] = "b"
        await api.update(f"{LEASES}/lock", made)
        made["spec"]["holderIdentity"] = "c"
        with pytest.raises(RefusedError, match="the object has been modified"):
            await api.update(f"{LEASES}/lock", made)


async def test_a_patch_of_a_lease_needs_no_version():
    async with running() as api:
        await api.create(LEASES, {"metadata": {"name": "lock"}})
        changed = await api.merge(f"{LEASES}/lock", {"spec": {"holderIdentity": "b"}})
        assert changed["spec"]["holderIdentity"] == "b"
