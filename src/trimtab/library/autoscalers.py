"""Reads and validates the manifests of autoscalers."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

from trimtab.library.documents import read_documents, unpacked
from trimtab.library.findings import ERROR, Finding, find_problems
from trimtab.library.yaml_nodes import Document, DocumentError, YamlNode, steps_of
from trimtab.model.feature_gates import FeatureGates, with_own_features
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.manifest import Manifest, read_manifest
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope

Source = str | PathLike[str] | Mapping[str, Any]
"""A file of YAML or JSON, or a manifest as plain data."""

PLAIN_DATA = "manifest"
"""What errors call a manifest that comes from no file."""


class ManifestError(ValueError):
    """A manifest cannot be read, or an API server would reject it. The message has a line per error."""


@dataclass(frozen=True, slots=True, repr=False)
class Autoscaler:
    """A valid HorizontalPodAutoscaler or VerticalPodAutoscaler."""

    kind: str
    """`HorizontalPodAutoscaler` or `VerticalPodAutoscaler`."""
    key: str
    """`namespace/name`."""
    data: dict[str, Any]
    """The manifest as plain data, as it was written."""
    warnings: tuple[str, ...] = ()
    """What is valid but probably not meant, as `trimtab validate` prints it."""
    feature_gates: str = ""
    """The gates that the manifest was validated with, beside Trimtab's own."""
    scopes: tuple[dict[str, Any], ...] = ()
    """The VPAScope of the same source that a VPA names, as plain data."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.key}>"

    def with_fields(self, fields: Mapping[str, Any]) -> "Autoscaler":
        """Return the autoscaler with other values, by path, as in `{"spec.maxReplicas": 20}`.

        Elements of a list are named by their index: `spec.metrics[0].resource.target.averageUtilization`. The value
        None removes a field. Raise ManifestError if the result is not valid.
        """
        data = deepcopy(self.data)
        for path, value in fields.items():
            _put(data, path, value)
        return replace(read_autoscaler(data, feature_gates=self.feature_gates), scopes=self.scopes)

    def patch_from(self, before: "Autoscaler") -> dict[str, Any]:
        """Return the merge patch that turns `before` into this autoscaler, for `kubectl patch --type=merge`."""
        return _merge_patch(before.data, self.data)


def read_autoscaler(source: Source, *, feature_gates: str = "") -> Autoscaler:
    """Read the only autoscaler of a file or of plain data.

    Raise ManifestError if it is not valid, or if there is not exactly 1.
    """
    found = read_autoscalers(source, feature_gates=feature_gates)
    if len(found) != 1:
        names = f": {', '.join(autoscaler.key for autoscaler in found)}" if found else ""
        raise ManifestError(
            f"{_name_of(source)}: has {len(found)} autoscalers where 1 is needed{names}; use read_autoscalers"
        )
    return found[0]


def read_autoscalers(source: Source, *, feature_gates: str = "") -> list[Autoscaler]:
    """Read and validate all autoscalers of a file or of plain data, in their order.

    `source` is the path of a YAML or JSON file with any number of documents, or a manifest as plain data. Lists are
    unpacked, and other kinds are skipped. `feature_gates` is a text such as `HPAScaleToZero=false`; the gates of
    Trimtab's own features are on. Raise ManifestError with all errors, each with its file and line.
    """
    gates = _gates(feature_gates)
    documents = _documents(source)
    manifests = [read_manifest(document.data, gates) for document in documents]
    findings = list(find_problems(documents, manifests))
    if errors := [finding.line() for finding in findings if finding.severity == ERROR]:
        raise ManifestError("\n".join(errors))
    scopes = {
        manifest.key: document.data
        for document, manifest in zip(documents, manifests, strict=True)
        if isinstance(manifest.object, VPAScope)
    }
    return [
        Autoscaler(
            manifest.kind,
            manifest.key,
            document.data,
            _warnings(findings, manifest),
            feature_gates,
            tuple(scopes[key] for key in _scopes_named_by(manifest.object) if key in scopes),
        )
        for document, manifest in zip(documents, manifests, strict=True)
        if isinstance(manifest.object, HorizontalPodAutoscaler | VerticalPodAutoscaler)
    ]


def _scopes_named_by(autoscaler: HorizontalPodAutoscaler | VerticalPodAutoscaler) -> list[str]:
    if isinstance(autoscaler, HorizontalPodAutoscaler):
        return []
    return [f"{autoscaler.metadata.namespace}/{name}" for name in autoscaler.scope_names]


def _gates(text: str) -> FeatureGates:
    try:
        return FeatureGates.parse(with_own_features(text))
    except ValueError as error:
        raise ManifestError(f"feature_gates: {error}") from error


def _documents(source: Source) -> list[Document]:
    if isinstance(source, Mapping):
        found = [_unlined(deepcopy(dict(source)))]
    else:
        try:
            found = read_documents(fspath(source))
        except DocumentError as error:
            raise ManifestError(str(error)) from error
    return [item for document in found for item in unpacked(document)]


def _unlined(data: dict[str, Any]) -> Document:
    """Return plain data as a document without lines, whose items can be unpacked."""
    items = data.get("items")
    elements = items if isinstance(items, list) else []
    children = {str(index): YamlNode(item, 0) for index, item in enumerate(elements)}
    return Document(PLAIN_DATA, YamlNode(data, 0, {"items": YamlNode(items, 0, children)}))


def _warnings(findings: list[Finding], manifest: Manifest) -> tuple[str, ...]:
    subject = (manifest.kind, manifest.key)
    return tuple(finding.line() for finding in findings if (finding.kind, finding.key) == subject)


def _name_of(source: Source) -> str:
    return PLAIN_DATA if isinstance(source, Mapping) else fspath(source)


def _put(data: dict[str, Any], path: str, value: Any) -> None:
    """Set a field of plain data. Create the objects on its way, and remove it if the value is None."""
    steps = steps_of(path)
    if not steps:
        raise ManifestError(f"{path!r} is no field; write a path such as spec.maxReplicas")
    node: Any = data
    for step in steps[:-1]:
        node = node[_index(node, step, path)] if isinstance(node, list) else _child(node, step, path)
    last = steps[-1]
    if isinstance(node, list):
        node[_index(node, last, path)] = deepcopy(value)
    elif not isinstance(node, dict):
        raise ManifestError(f"{path}: there is no field {last!r} in {node!r}")
    elif value is None:
        node.pop(last, None)
    else:
        node[last] = deepcopy(value)


def _child(node: Any, step: str, path: str) -> Any:
    if not isinstance(node, dict):
        raise ManifestError(f"{path}: there is no field {step!r} in {node!r}")
    return node.setdefault(step, {})


def _index(elements: list[Any], step: str, path: str) -> int:
    if not step.isdecimal() or int(step) >= len(elements):
        raise ManifestError(f"{path}: [{step}] names no element; the list has {len(elements)}")
    return int(step)


def _merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch (RFC 7386) between two JSON objects. Lists are replaced whole."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        known = before.get(name)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            if inner := _merge_patch(known, value):
                patch[name] = inner
        elif name not in before or value != known:
            patch[name] = value
    return patch
