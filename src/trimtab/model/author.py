"""Which replica of Trimtab wrote a change, for records and log lines."""

from trimtab.model.json.wire import Wire


class Author(Wire):
    """The replica that wrote a change, its Lease, and the version that the change is based on."""

    replica: str = ""
    """The identity of the process, as in the Lease."""
    lease_transitions: int | None = None
    """How often the Lease had changed its holder; None without leader election."""
    base_version: str = ""
    """The resourceVersion of the changed object when it was read."""

    @property
    def facts(self) -> dict[str, str | int]:
        """Return the fields of a log line."""
        facts: dict[str, str | int] = {"by": self.replica}
        if self.lease_transitions is not None:
            facts["leaseTransitions"] = self.lease_transitions
        return facts | ({"baseVersion": self.base_version} if self.base_version else {})

    def __str__(self) -> str:
        parts = [self.replica]
        if self.lease_transitions is not None:
            parts.append(f"lease transition {self.lease_transitions}")
        if self.base_version:
            parts.append(f"based on version {self.base_version}")
        return ", ".join(parts)
