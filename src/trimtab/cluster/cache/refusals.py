"""Records which informers of a namespace the server refuses.

Rights are lost together with a namespace, because its RoleBindings are deleted with it. If every kind is refused, the
namespace was deleted or is not to be acted on. If only some kinds are refused, rights are missing.
"""


class Refusals:
    """The informers of each namespace, and whether the server refuses them."""

    def __init__(self) -> None:
        self._refused: dict[str, dict[str, bool]] = {}

    def note(self, namespace: str, resource: str, *, is_refused: bool) -> None:
        """Record the last answer of the server to one informer."""
        self._refused.setdefault(namespace, {})[resource] = is_refused

    def covers(self, namespace: str) -> bool:
        """Return whether every informer of the namespace is refused."""
        return all(self._refused.get(namespace, {}).values())
