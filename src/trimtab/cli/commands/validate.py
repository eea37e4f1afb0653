"""`trimtab validate` checks manifests offline, as an API server would, and warns of likely mistakes."""

from collections.abc import Sequence

import click

from trimtab.cli.bundle import read_bundle
from trimtab.cli.errors import CANNOT_READ, FOUND, CommandError
from trimtab.cli.names import complete_file
from trimtab.cli.output import output_option, to_json, to_yaml
from trimtab.cli.parameters import ListOption
from trimtab.library.findings import ERROR, Finding, find_problems
from trimtab.library.yaml_nodes import Document
from trimtab.model.feature_gates import FeatureGates, GateError, with_own_features
from trimtab.model.manifest import Manifest, read_manifest
from trimtab.model.readable import counted


def print_table(findings: Sequence[Finding]) -> None:
    """Print the findings as a table that fits the terminal."""
    # Only this format needs rich, whose import takes longer than most validations.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for heading in ("WHERE", "OBJECT", "SEVERITY", "FIELD", "MESSAGE"):
        table.add_column(heading, overflow="fold")
    for found in findings:
        cells = (str(found.place), found.subject, found.severity, found.field, found.message)
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete_file)
@output_option("text", "table", "json", "yaml")
@click.option(
    "--feature-gates",
    cls=ListOption,
    default="",
    metavar="A=true,B=false",
    help="Gates of the API server to judge for.",
)
@click.option("--strict", is_flag=True, help="Let warnings count as errors in the exit code.")
@click.pass_context
def validate(
    ctx: click.Context, files: tuple[str, ...], output: str, feature_gates: str, strict: bool
) -> None:
    """Check manifests offline, as the API server would, and more.

    Reads HorizontalPodAutoscalers (autoscaling/v1, v2, v2beta1, v2beta2 and autoscaling.trimtab.dev/v2),
    VerticalPodAutoscalers, their checkpoints and VPAScopes from YAML or JSON files, `-` for standard input; Lists are
    unpacked, other kinds skipped. Prints `FILE:LINE: KIND NAMESPACE/NAME: FIELD: MESSAGE` for each finding, also for
    objects that do not go together.

    The gates HPASelectionStrategy, HPAConfigurableTolerance, HPAScaleToZero and VPASelectorRefinement are on unless
    --feature-gates names them; all others have their defaults.

    Exit codes: 0 no errors, 1 errors, 2 something could not be read.
    """
    gates = gates_of(feature_gates)
    bundle = read_bundle(files)
    manifests = [read_manifest(document.data, gates) for document in bundle.documents]
    findings = list(find_problems(bundle.documents, manifests))
    skipped = [
        (document, manifest)
        for document, manifest in zip(bundle.documents, manifests, strict=True)
        if not manifest.is_known
    ]
    _show(findings, skipped, output)
    if output in ("text", "table") and (bundle.documents or not bundle.has_unreadable):
        _summarise(findings, len(manifests) - len(skipped))
    bad = sum(finding.severity == ERROR or strict for finding in findings)
    ctx.exit(CANNOT_READ if bundle.has_unreadable else FOUND if bad else 0)


def gates_of(text: str) -> FeatureGates:
    """Return the gates to validate for. Raise CommandError if they cannot be parsed."""
    try:
        return FeatureGates.parse(with_own_features(text))
    except GateError as error:
        raise CommandError(f"--feature-gates: {error}") from error


def _show(findings: Sequence[Finding], skipped: Sequence[tuple[Document, Manifest]], output: str) -> None:
    if output in ("json", "yaml"):
        data = {
            "findings": [finding.data() for finding in findings],
            "skipped": [
                {
                    "file": document.source,
                    "line": document.root.line,
                    "kind": manifest.kind,
                    "object": manifest.key,
                }
                for document, manifest in skipped
            ],
        }
        click.echo(to_json(data) if output == "json" else to_yaml(data), nl=False)
        return
    if output == "table" and findings:
        print_table(findings)
    elif output == "text":
        for finding in findings:
            click.echo(finding.line())
    for document, manifest in skipped:
        subject = f"{manifest.kind} {manifest.key}".strip()
        click.echo(f"{document.place_of()}: {subject}: skipped, not a kind that Trimtab validates", err=True)


def _summarise(findings: Sequence[Finding], checked: int) -> None:
    errors = sum(finding.severity == ERROR for finding in findings)
    found = f"{counted(errors, 'error')}, {counted(len(findings) - errors, 'warning')}"
    click.echo(f"{counted(checked, 'object')} checked: {found}", err=True)
