"""coordination.k8s.io/v1 Lease."""

from datetime import datetime

from trimtab.model.meta import ObjectMeta
from trimtab.model.wire import Wire


class LeaseSpec(Wire):
    """Who holds the lease and until when."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Wire):
    """A lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
