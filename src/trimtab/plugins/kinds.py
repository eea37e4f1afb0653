"""The kinds of plug-ins, and what a plug-in declares about itself."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

PROTOCOL = 1
"""The version of all protocols; it grows when a plug-in written for an earlier one would no longer work."""

DEFAULT_BUDGET = 0.1
"""Seconds of CPU time that one call of a plug-in may take, unless it declares more: a thousand times what a function needs."""

LONGEST_BUDGET = 1.0
"""Seconds that a pure plug-in may declare; all other decisions wait meanwhile."""


class PluginKind(StrEnum):
    """The kind of a plug-in; the value is its group of entry points."""

    POD_FILTER = "trimtab.pod_filters"
    METRIC_SOURCE = "trimtab.metric_sources"
    REPLICA_POLICY = "trimtab.replica_policies"
    ESTIMATOR = "trimtab.estimators"

    @property
    def label(self) -> str:
        """Return the kind in words, as messages name it."""
        return _LABELS[self]

    @property
    def article(self) -> str:
        """Return the kind in words, with its article."""
        return f"{'an' if self is PluginKind.ESTIMATOR else 'a'} {self.label}"

    @property
    def place(self) -> str:
        """Return where objects name plug-ins of this kind."""
        return _PLACES[self]

    @property
    def is_async(self) -> bool:
        """Return whether plug-ins of this kind are coroutine functions."""
        return self is PluginKind.METRIC_SOURCE


_LABELS = {
    PluginKind.POD_FILTER: "pod filter",
    PluginKind.METRIC_SOURCE: "metric source",
    PluginKind.REPLICA_POLICY: "replica policy",
    PluginKind.ESTIMATOR: "estimator",
}

_PLACES = {
    PluginKind.POD_FILTER: "spec.selectionStrategy of an HPA",
    PluginKind.METRIC_SOURCE: "the configuration of the adapter",
    PluginKind.REPLICA_POLICY: "spec.replicaPolicies of an HPA",
    PluginKind.ESTIMATOR: "spec.recommenders of a VPA",
}


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a plug-in declares about itself."""

    protocol: int = PROTOCOL
    budget: float = DEFAULT_BUDGET
    """Seconds of CPU time that one call may take; a hundred lines need less than a thousandth of it."""
    needs_nodes: bool = False
    """Pod filters: whether the nodes of the pods must be read."""
    needs_owners: bool = False
    """Pod filters: whether the owners of the pods must be read, up to the target."""
    needs_samples: bool = False
    """Estimators: whether the recent samples are needed besides the histograms."""


NOTHING_DECLARED = Declaration()

_ATTRIBUTE = "__trimtab_plugin__"
_Function = TypeVar("_Function", bound=Callable[..., Any])


def declare(
    *,
    protocol: int = PROTOCOL,
    budget: float = DEFAULT_BUDGET,
    needs_nodes: bool = False,
    needs_owners: bool = False,
    needs_samples: bool = False,
) -> Callable[[_Function], _Function]:
    """Return a decorator that attaches a declaration to a plug-in. Without one the defaults hold."""
    declaration = Declaration(protocol, budget, needs_nodes, needs_owners, needs_samples)

    def attach(function: _Function) -> _Function:
        setattr(function, _ATTRIBUTE, declaration)
        return function

    return attach


def declaration_of(function: object) -> Declaration:
    """Return what a plug-in declares, or the defaults."""
    declared = getattr(function, _ATTRIBUTE, None)
    return declared if isinstance(declared, Declaration) else NOTHING_DECLARED
