"""The HPAs of manifests as candidates of a simulation: valid, with all defaults, each with a name of its own."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.nodes import Document
from trimtab.cli.validate import gates_of
from trimtab.decide.horizontal.compat import NAMED, Compat
from trimtab.model import hpa as hpa_rules
from trimtab.model import wire
from trimtab.model.gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.manifest import read_manifest
from trimtab.simulate import Candidate


def candidates_of(documents: Sequence[Document], feature_gates: str, compat: str) -> list[Candidate]:
    """Return a candidate for each HPA; raise CommandError for one that an API server would refuse."""
    gates, rules = gates_of(feature_gates), _compat(compat)
    found = [(document, hpa) for document in documents if (hpa := _hpa(document, gates)) is not None]
    if not found:
        raise CommandError("there is no HorizontalPodAutoscaler in the input", "name a file that holds one")
    per_file = Counter(document.source for document, _ in found)
    return [
        Candidate(
            Path(document.source).name if per_file[document.source] == 1 else hpa.key,
            hpa,
            gates=gates,
            compat=rules,
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
    return wire.convert(hpa_rules.default(manifest.object), HorizontalPodAutoscaler)


def _compat(name: str) -> Compat:
    rules = NAMED.get(name or "trimtab")
    if rules is None:
        known = ", ".join(sorted(set(NAMED) - {"trimtab"}))
        raise CommandError(f"--compat: {name!r} is not known; known are: {known}")
    return rules
