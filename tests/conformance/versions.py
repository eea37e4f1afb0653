"""The versions of Kubernetes that the recorded answers are replayed for.

The answers are those of the first version. A later version is checked with the same cases, changed where that version differs: each
`Change` has a name and a reason, and the runner counts the cases that it changed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from trimtab.decide.horizontal.rules import Rules
from trimtab.model.core.server_rules import KUBERNETES_1_36, KUBERNETES_1_37, ServerRules
from trimtab.model.feature_gates import FeatureGates

Case = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """What a version does otherwise: the case as it would have been recorded there, or None if it is the same."""

    name: str
    reason: str
    apply: Callable[[Case], Case | None]


@dataclass(frozen=True)
class Version:
    """A version of Kubernetes by its name in `--compat`."""

    name: str
    server: ServerRules
    changes: tuple[Change, ...] = ()

    @property
    def rules(self) -> Rules:
        """Return the rules of decisions of this version."""
        return Rules(self.name)

    def gates(self, case: Case) -> FeatureGates:
        """Return the gates that a case was recorded with, or raise GateError for those that this version lacks."""
        return FeatureGates.of(case["featureGates"], self.name)

    def changed(self, case: Case) -> tuple[Case, list[str]]:
        """Return the case as this version would answer it, and the names of the changes."""
        names = []
        for change in self.changes:
            changed = change.apply(case)
            if changed is not None:
                case = changed
                names.append(change.name)
        return case, names


RECORDED = Version("kubernetes-1.36", KUBERNETES_1_36)

_current: ContextVar[Version] = ContextVar("version", default=RECORDED)


def current() -> Version:
    """Return the version that the checkers replay."""
    return _current.get()


@contextmanager
def replaying(version: Version) -> Iterator[None]:
    """Let the checkers replay a version."""
    token = _current.set(version)
    try:
        yield
    finally:
        _current.reset(token)


def all_versions() -> tuple[Version, ...]:
    """Return the versions to replay, that of the recordings first."""
    from tests.conformance import changes_1_37

    return RECORDED, Version("kubernetes-1.37", KUBERNETES_1_37, changes_1_37.CHANGES)
