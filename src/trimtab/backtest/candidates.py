"""Reads a manifest as the HPA that an operator would run."""

from typing import Any

import msgspec

from trimtab.decide.horizontal.status.ignored_fields import annotation_problem, unreadable_annotations
from trimtab.model import hpa as hpa_rules
from trimtab.model.core.meta import group_of
from trimtab.model.feature_gates import GATES, FeatureGates, as_flag, with_own_features
from trimtab.model.hpa import metric_annotations, replica_policies, selection_strategy
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.model.manifest import read_manifest


class CandidateError(ValueError):
    """The manifest cannot be simulated. The message names the object and the cause."""

    def __init__(self, message: str, hint: str, field: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.field = field
        """The path of the wrong field; empty for the whole object."""


def candidate_hpa(data: Any, gates: FeatureGates) -> HorizontalPodAutoscaler | None:
    """Return an HPA with its annotations and defaults applied, or None for another kind.

    Raise CandidateError for an HPA that an API server would reject, or that no operator would scale.
    """
    manifest = read_manifest(data, gates)
    if manifest.errors:
        error = manifest.errors[0]
        raise CandidateError(
            f"{manifest.kind} {manifest.key}: {error}",
            f"`trimtab validate{_flags(gates)}` shows everything",
            error.field.strip("."),
        )
    if not isinstance(manifest.object, HorizontalPodAutoscaler):
        return None
    conflict = selection_strategy.conflict_of(data)
    if problem := conflict or annotation_problem(manifest.object, gates):
        raise CandidateError(
            f"{manifest.kind} {manifest.key}: {problem}", "an operator scales nothing until then"
        )
    hpa = wire.convert(hpa_rules.default(_with_annotations(manifest.object)), HorizontalPodAutoscaler)
    for problem in unreadable_annotations(hpa):
        raise CandidateError(
            f"{manifest.kind} {manifest.key}: {problem}",
            "correct it; a backtest without it is of another HPA",
        )
    return hpa


def _flags(gates: FeatureGates) -> str:
    """Return the flags with which `trimtab validate` has these gates."""
    assumed = FeatureGates.parse(with_own_features(""))
    differing = {name: gates.enabled(name) for name in GATES if gates.enabled(name) != assumed.enabled(name)}
    return f" --feature-gates={as_flag(differing)}" if differing else ""


def _with_annotations(hpa: HorizontalPodAutoscaler) -> HorizontalPodAutoscaler:
    """Return an HPA with its annotations applied, as the operator reads it."""
    annotations = hpa.metadata.annotations
    spec = selection_strategy.with_annotation(hpa.spec, annotations)
    if group_of(hpa.api_version) == selection_strategy.NATIVE_GROUP:
        spec = metric_annotations.apply_annotations(spec, annotations)
        spec = replica_policies.apply_annotation(spec, annotations)
    return msgspec.structs.replace(hpa, spec=spec)
