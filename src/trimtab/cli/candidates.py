"""The HPAs of manifests as candidates of a simulation: valid, with all defaults, each with a name of its own."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.nodes import Document
from trimtab.decide.horizontal.decision import annotation_problem
from trimtab.model import hpa as hpa_rules
from trimtab.model.core.meta import group_of
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import selection_strategy
from trimtab.model.hpa.metric_fields import own_fields
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.model.manifest import read_manifest
from trimtab.operator.horizontal.controller import rules_of
from trimtab.operator.settings.settings import Settings
from trimtab.simulate import Candidate


def candidates_of(documents: Sequence[Document], settings: Settings) -> list[Candidate]:
    """Return a candidate for each HPA; raise CommandError for one that an API server would refuse."""
    try:
        rules = rules_of(settings)
    except ValueError as error:
        raise CommandError(str(error)) from error
    found = [(document, hpa) for document in documents if (hpa := _hpa(document, rules.gates)) is not None]
    if not found:
        raise CommandError("there is no HorizontalPodAutoscaler in the input", "name a file that holds one")
    per_file = Counter(document.source for document, _ in found)
    return [
        Candidate(
            Path(document.source).name if per_file[document.source] == 1 else hpa.key,
            hpa,
            rules.settings,
            rules.gates,
            rules.compat,
        )
        for document, hpa in found
    ]


def _hpa(document: Document, gates: FeatureGates) -> HorizontalPodAutoscaler | None:
    manifest = read_manifest(document.data, gates)
    if manifest.errors:
        error = manifest.errors[0]
        raise CommandError(
            f"{document.place_of(error.field.strip('.'))}: {manifest.kind} {manifest.key}: {error}",
            "`trimtab validate` shows everything",
            FOUND,
        )
    if not isinstance(manifest.object, HorizontalPodAutoscaler):
        return None
    conflict = selection_strategy.conflict_of(document.data)
    if problem := conflict or annotation_problem(manifest.object, gates):
        raise CommandError(
            f"{document.place_of()}: {manifest.kind} {manifest.key}: {problem}",
            "an operator scales nothing until then",
            FOUND,
        )
    return wire.convert(hpa_rules.default(_with_annotations(manifest.object)), HorizontalPodAutoscaler)


def _with_annotations(hpa: HorizontalPodAutoscaler) -> HorizontalPodAutoscaler:
    """Return an HPA with what its annotations say, as the operator reads it."""
    annotations = hpa.metadata.annotations
    spec = selection_strategy.with_annotation(hpa.spec, annotations)
    if group_of(hpa.api_version) == selection_strategy.NATIVE_GROUP:
        spec = own_fields.with_annotations(spec, annotations)
    return msgspec.structs.replace(hpa, spec=spec)
