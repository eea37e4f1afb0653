"""Serving what definitions define: resources come and go with their CustomResourceDefinition."""

from trimtab.lab.crd.definitions import resource_of
from trimtab.lab.history import Change
from trimtab.lab.registry import Registry
from trimtab.lab.store import Store

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class DefinitionKeeper:
    """Keeps the registry in step with the stored definitions."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        store.listen(self._notice)

    def _notice(self, resource: str, change: Change) -> None:
        if resource != DEFINITIONS:
            return
        definition = change.entry.decoded()
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        if change.action == "DELETED":
            self._registry.remove(group, plural)
            self._empty(f"{plural}.{group}")
            return
        before = change.previous.decoded()["spec"] if change.previous is not None else None
        if before == definition["spec"]:
            return
        made = resource_of(definition)
        if made is None:
            self._registry.remove(group, plural)
        else:
            self._registry.add(made)

    def _empty(self, storage: str) -> None:
        """Remove the objects of a definition that is gone, and end their watches."""
        shelf = self._store.shelf(storage)
        for key in list(shelf.keys):
            self._store.remove(storage, key)
        shelf.history.cut_all()
