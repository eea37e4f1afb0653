"""`trimtab convert` converts HPA and VPA manifests between versions and kinds, without loss."""

from collections.abc import Mapping
from typing import Any

import click

from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.names import complete_file
from trimtab.cli.output import output_option, to_json, to_yaml_stream
from trimtab.library.documents import is_list, read_documents
from trimtab.library.findings import ERROR, Finding
from trimtab.library.yaml_nodes import Document, DocumentError
from trimtab.model import hpa
from trimtab.model.field_errors import FieldError
from trimtab.model.hpa import selection_strategy
from trimtab.model.hpa.annotations import STORED
from trimtab.model.hpa.manifest import WRITERS
from trimtab.model.hpa.metric_annotations import MetricAnnotationError
from trimtab.model.hpa.versions.v1_annotations import unreadable_spec
from trimtab.model.json.wire import without_nulls
from trimtab.model.vpa import conversion as vpa_conversion

KIND = "HorizontalPodAutoscaler"
_FIRST = ("apiVersion", "kind", "metadata", "spec", "status")
_IDENTITY = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"}
)
_NOT_OF_THE_NEW = frozenset({"kubectl.kubernetes.io/last-applied-configuration", *STORED})
"""Annotations about the object itself: what was applied, and what was decided."""


@click.command()
@click.argument("file", metavar="FILE", shell_complete=complete_file)
@click.option(
    "--to",
    "version",
    type=click.Choice([*WRITERS, "native"]),
    required=True,
    help="Version to write; native is Kubernetes' or upstream's newest.",
)
@output_option("yaml", "json")
def convert(file: str, version: str, output: str) -> None:
    """Convert HPA and VPA manifests between versions and kinds.

    Reads every version (autoscaling/v1, v2, v2beta1, v2beta2, autoscaling.trimtab.dev/v2) from FILE, `-` for standard
    input, and writes autoscaling/v1, autoscaling/v2, or with `--to trimtab` autoscaling.trimtab.dev/v2. What a version
    has no field for is kept in annotations, so nothing is lost on the way back. v1 needs the defaults of `behavior`
    written out. Between autoscaling and autoscaling.trimtab.dev the result is a new object, ready to be applied: status,
    uid and the like are left out.

    With `--to trimtab` and `--to native` VPAs and their checkpoints move between autoscaling.k8s.io/v1 and
    autoscaling.trimtab.dev/v1, with status and history. A native VPA names its VPAScope by an annotation.
    Other kinds pass unchanged; comments are not kept.

    Exit codes: 0 converted, 1 an object cannot be converted, 2 the file cannot be read.
    """
    try:
        documents = read_documents(file)
    except DocumentError as error:
        raise CommandError(str(error)) from error
    if not documents:
        raise CommandError(f"{file}: holds no documents")
    converted = [_converted(document, version) for document in documents]
    if output == "yaml":
        click.echo(to_yaml_stream(converted), nl=False)
    else:
        whole = (
            converted[0] if len(converted) == 1 else {"apiVersion": "v1", "kind": "List", "items": converted}
        )
        click.echo(to_json(whole), nl=False)


def _converted(document: Document, version: str) -> Any:
    if is_list(document):
        count = len(document.data["items"])
        items = [_converted(document.item("items", str(position)), version) for position in range(count)]
        return {**document.data, "items": items}
    data = document.data
    if vpa_conversion.is_vpa_kind(data):
        return _converted_vpa(document, version)
    if not isinstance(data, dict) or data.get("kind") != KIND:
        return data
    data = without_nulls(data)
    _refuse_misfits(document, hpa.decode_errors(data))
    if conflict := selection_strategy.conflict_of(data):
        raise CommandError(
            f"{document.place_of()}: {KIND} {_name_of(data)}: {conflict}",
            hint="nothing was written",
            exit_code=FOUND,
        )
    if broken := unreadable_spec(data):
        raise CommandError(
            f"{document.place_of()}: {KIND} {_name_of(data)}: annotation {broken[0]} cannot be read",
            hint="nothing was written; correct the annotation or remove it",
            exit_code=FOUND,
        )
    try:
        converted = WRITERS["v2" if version == "native" else version](data)
    except MetricAnnotationError as error:
        raise CommandError(
            f"{document.place_of()}: {KIND} {_name_of(data)}: annotation {error.annotation}: {error}",
            hint="nothing was written; correct the annotation or remove it",
            exit_code=FOUND,
        ) from error
    if _group_of(converted) != _group_of(data):
        converted = _as_new(converted)
    return _ordered(converted)


def _refuse_misfits(document: Document, errors: list[FieldError]) -> None:
    if not errors:
        return
    kind, name = document.data["kind"], _name_of(document.data)
    raise CommandError(
        "; ".join(
            Finding(document.place_of(error.field), ERROR, kind, name, error.field, error.body).line()
            for error in errors
        ),
        hint="nothing was written",
        exit_code=FOUND,
    )


def _converted_vpa(document: Document, version: str) -> Any:
    data = document.data
    write = vpa_conversion.WRITERS.get(version)
    if write is None:
        return data
    _refuse_misfits(document, vpa_conversion.decode_errors(data))
    try:
        converted = write(without_nulls(data))
    except vpa_conversion.ScopeConflictError as error:
        raise CommandError(
            f"{document.place_of()}: {data['kind']} {_name_of(data)}: {error}",
            hint="nothing was written; make them equal or remove one",
            exit_code=FOUND,
        ) from error
    if _group_of(converted) != _group_of(data):
        # The recommendation and the history are worth as much under the other kind.
        converted = _as_new(converted) | {name: data[name] for name in ("status",) if name in data}
    return _ordered(converted)


def _group_of(data: Mapping[str, Any]) -> str:
    return str(data.get("apiVersion", "")).rpartition("/")[0]


def _as_new(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that the API server sets."""
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping):
        return dict(data)
    kept = {name: value for name, value in metadata.items() if name not in _IDENTITY}
    annotations = kept.pop("annotations", None) or {}
    if mine := {name: value for name, value in annotations.items() if name not in _NOT_OF_THE_NEW}:
        kept["annotations"] = mine
    return {**{name: value for name, value in data.items() if name != "status"}, "metadata": kept}


def _ordered(data: Mapping[str, Any]) -> dict[str, Any]:
    """Order the fields of an object as manifests usually do."""
    first = {name: data[name] for name in _FIRST if name in data}
    return {**first, **{name: value for name, value in data.items() if name not in first}}


def _name_of(data: Mapping[str, Any]) -> str:
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""
