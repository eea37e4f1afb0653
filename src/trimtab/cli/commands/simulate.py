"""`trimtab simulate` backtests HPAs and VPAs on recorded load, with the production code."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.bundle import read_bundle
from trimtab.cli.commands.run import options_for
from trimtab.cli.errors import CANNOT_READ, FOUND, CommandError
from trimtab.cli.names import complete_file
from trimtab.cli.operator_settings import assumptions, simulated_settings
from trimtab.cli.output import output_option, to_json, to_yaml, write_file
from trimtab.cli.parameters import ListOption, plugins_option_with
from trimtab.decide.horizontal.records.record import dumps
from trimtab.decide.horizontal.status.ignored_fields import ignored_annotations
from trimtab.library.candidates import (
    UPSTREAM,
    CandidateError,
    candidate_hpa,
    compared,
    hpa_candidate,
    with_estimators,
)
from trimtab.library.progress import progress_line
from trimtab.library.simulation import table_of
from trimtab.library.simulator import Candidate, Model, ModelError, Results, TraceError
from trimtab.library.simulator.chart import render_chart, render_sizes
from trimtab.library.simulator.sizes import AnyCandidate, AnyResults, SizeCandidate, SizeResults, play
from trimtab.library.trace import Trace
from trimtab.library.yaml_nodes import Document
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.dry_run import DRY_RUN, MODE_ANNOTATION, is_dry_run
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.manifest import read_manifest
from trimtab.model.quantity import QuantityError, milli_value_of
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.settings.declare import SIMULATE
from trimtab.operator.settings.settings import Settings, read_by
from trimtab.plugins.guard import INSTALL_IT, Guards
from trimtab.plugins.registry import NO_PLUGINS, PluginError, Plugins, load_plugins


def candidates_of(
    documents: Sequence[Document], settings: Settings, *, plugins: Plugins = NO_PLUGINS
) -> list[AnyCandidate]:
    """Return HPAs, and VPAs with what is tried beside them, called by their file if it has only one.

    VPAs and HPAs of a file that target one workload are tried together. Of VPAs without a scope, and of HPAs, one at a
    time. Raise CommandError for an object that an API server would reject.
    """
    guards, found = Guards(plugins), list[AnyCandidate]()
    for source in dict.fromkeys(document.source for document in documents):
        here = [document for document in documents if document.source == source]
        hpas = _hpas(here, settings, guards)
        objects = [read_manifest(document.data, settings.gates).object for document in here]
        vpas = [obj for obj in objects if isinstance(obj, VerticalPodAutoscaler)]
        scopes = tuple(obj for obj in objects if isinstance(obj, VPAScope))
        sized: list[SizeCandidate] = []
        alone = hpas
        for target in dict.fromkeys(vpa.spec.target_ref for vpa in vpas):
            mine = [vpa for vpa in vpas if vpa.spec.target_ref == target]
            scoped = tuple(vpa for vpa in mine if vpa.scope_names)
            plain = [(vpa, *scoped) for vpa in mine if not vpa.scope_names] or [scoped]
            beside = [hpa for hpa in hpas if hpa.hpa.spec.scale_target_ref == target]
            alone = [hpa for hpa in alone if hpa not in beside]
            chosen: list[Candidate | None] = [*beside] or [None]
            for group in plain:
                for hpa in chosen:
                    name = group[0].key + (f" + {hpa.hpa.key}" if hpa is not None else "")
                    sized.append(SizeCandidate(name, group, settings, scopes, hpa))
        if len(sized) == 1:
            sized = [replace(sized[0], name=Path(source).name)]
        found += [*alone, *(with_estimators(candidate, plugins, INSTALL_IT) for candidate in sized)]
    if not found:
        raise CommandError(
            "there is no HorizontalPodAutoscaler and no VerticalPodAutoscaler in the input",
            "name a file that holds one",
        )
    return found


def _hpas(documents: Sequence[Document], settings: Settings, guards: Guards) -> list[Candidate]:
    gates = decision_config(settings).gates
    read = [(document, hpa) for document in documents if (hpa := _hpa(document, gates)) is not None]
    found = []
    for document, hpa in read:
        try:
            name = Path(document.source).name if len(read) == 1 else hpa.key
            found.append(hpa_candidate(name, hpa, settings, guards))
        except ModelError as error:
            raise CommandError(f"{document.place_of('')}: {error}") from error
    return found


def _hpa(document: Document, gates: FeatureGates) -> HorizontalPodAutoscaler | None:
    try:
        return candidate_hpa(document.data, gates)
    except CandidateError as error:
        raise CommandError(f"{document.place_of(error.field)}: {error}", error.hint, FOUND) from error


def _amounts(_ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, int]:
    found = {}
    for text in texts:
        name, _, amount = text.partition("=")
        try:
            found[name] = milli_value_of(amount)
        except QuantityError:
            found[name] = 0
        if not name or found[name] <= 0:
            raise click.BadParameter(f"{text!r}: write NAME=QUANTITY, as in cpu=500m", param=param)
    return found


def _prices(_ctx: click.Context, param: click.Parameter, text: str) -> dict[str, float]:
    found = {}
    for part in text.split(",") if text else ():
        name, _, price = part.partition("=")
        try:
            found[name] = float(price)
        except ValueError:
            found[name] = -1.0
        if name not in (CPU, MEMORY) or not 0 <= found[name] < inf:
            raise click.BadParameter(f"{part!r}: write cpu=PRICE and memory=PRICE", param=param)
    return found


def _amounts_option(flag: str, into: str, of: str, text: str) -> Callable[[Any], Any]:
    return click.option(flag, into, multiple=True, callback=_amounts, metavar=f"{of}=QUANTITY", help=text)


def _seconds_option(flag: str, at_least: float, default: float, text: str) -> Callable[[Any], Any]:
    kind = click.FloatRange(min=at_least)
    return click.option(flag, type=kind, default=default, show_default=True, help=text)


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("simulate")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete_file)
@click.option(
    "--trace",
    "trace_file",
    type=FILE,
    required=True,
    help="Recorded load: a CSV whose columns are the time and the total of each metric, or the usage of each pod.",
)
@_amounts_option(
    "--request",
    "requests",
    "RESOURCE",
    "What one pod requests, or a container by CONTAINER/RESOURCE; utilizations need it.",
)
@_amounts_option(
    "--limit",
    "limits",
    "RESOURCE",
    "The limits of a pod of a VPA, or of a container; without them nothing is throttled or killed.",
)
@click.option(
    "--price",
    "prices",
    default="",
    callback=_prices,
    metavar="cpu=0.04,memory=0.005",
    help="The price of a core-hour and of a GiB-hour that is requested.",
)
@click.option(
    "--compare",
    type=click.Choice([UPSTREAM]),
    help="Also play every candidate by the rules of the upstream programs.",
)
@_amounts_option(
    "--capacity",
    "capacity",
    "METRIC",
    "The most that one pod can carry; of a resource, its request unless said.",
)
@click.option("--replicas", type=click.IntRange(min=0), help="Replicas at the beginning.")
@_seconds_option("--start-seconds", 0, 30.0, "From the creation of a pod until it is ready.")
@_seconds_option(
    "--metrics-period", 1, 15.0, "How often usage is measured, in seconds; for VPAs at most every 60."
)
@_seconds_option(
    "--metrics-delay", 0, 15.0, "How long a measurement takes to reach the autoscaler, in seconds."
)
@click.option(
    "--sync-period",
    type=click.FloatRange(min=1),
    show_default="15, or the operator's; 60 for VPAs",
    help="How often the autoscaler decides, in seconds.",
)
@click.option(
    "--settings",
    "settings_file",
    type=FILE,
    help="The operator's settings: its Lease, as `kubectl get lease -n trimtab -o yaml` prints it.",
)
@click.option(
    "--feature-gates",
    cls=ListOption,
    default="",
    metavar="A=true,B=false",
    help="Gates, besides those that --settings or --compat bring. Without --settings, HPASelectionStrategy and VPASelectorRefinement are on.",
)
@click.option(
    "--compat",
    cls=ListOption,
    default="",
    help="Decide as upstream does: kubernetes-1.37 or kubernetes-1.36, vpa-1.8, or both.",
)
@plugins_option_with("Plug-ins to load. Those that an HPA or a VPA of the input names must be among them.")
@click.option("--changes", is_flag=True, help="Also list every change of the scale with its reason.")
@click.option(
    "--svg",
    type=NEW_FILE,
    help="Draw the replicas, or the requests of VPAs, into this file.",
)
@click.option(
    "--records",
    type=NEW_FILE,
    help="Keep the record of every change in this file, for `trimtab replay`.",
)
@output_option("table", "json", "yaml")
def simulate(  # noqa: PLR0913 - one parameter per option
    files: tuple[str, ...],
    *,
    trace_file: Path,
    settings_file: Path | None,
    sync_period: float | None,
    changes: bool,
    svg: Path | None,
    records: Path | None,
    plugins: tuple[str, ...],
    output: str,
    compare: str | None,
    **options: Any,
) -> None:
    """Backtest HPAs and VPAs on recorded load, with the production code.

    Each HPA in FILE... (`-` for standard input) is a candidate. The simulated workload shares the load among its ready
    pods; new pods are ready after --start-seconds. A metric is fed by the column of its name, a ContainerResource by
    `CONTAINER/RESOURCE` or the resource, one with a selector by `NAME{LABEL=VALUE}` or its name.

    VPAs are candidates too, with the VPAScopes and the HPA of their file that target the same workload. Recommender, updater
    and webhook decide about its pods in virtual time. Their usage is in the columns `cpu` and `memory`, or `CONTAINER/cpu`, as a
    total that --replicas pods (1 unless said) share, or in `POD/CONTAINER/cpu` for each pod. `POD/label/role` says when a pod
    had which role. A VPA recommends every 60 s unless --sync-period says otherwise.
    """
    documents = _documents(files)
    names = ("feature_gates", "compat", *(each.name for each in read_by(SIMULATE)))
    settings = simulated_settings(settings_file, {name: options.pop(name) for name in names})
    period = settings.horizontal.sync_period.total_seconds() if sync_period is None else sync_period
    trace = _trace(trace_file)
    try:
        model = Model(sync_period=period, **options)
        if sync_period is not None:
            settings = settings.replace(recommender_interval=timedelta(seconds=sync_period))
        loaded = load_plugins(plugins)
        candidates = compared(candidates_of(documents, settings, plugins=loaded), settings, loaded, compare)
    except (PluginError, ValueError) as error:
        raise CommandError(str(error)) from error
    if (model.limits or model.prices) and all(isinstance(found, Candidate) for found in candidates):
        raise CommandError("--limit and --price are for VPAs, and there is none in the input")
    try:
        with progress_line() as on_progress:
            results = play(candidates, trace, model, on_progress)
    except (ModelError, PluginError) as error:
        raise CommandError(str(error)) from error
    sizes = [result for result in results if isinstance(result, SizeResults)]
    changing = [result.hpa for result in results if result.hpa is not None]
    if svg is not None:
        write_file(svg, _picture(candidates[0], results, trace, model).encode())
    if records is not None:
        lines = (dumps(record) + b"\n" for result in changing for record in result.changes)
        write_file(records, b"".join(lines))
    if len(sizes) < len(results):
        click.echo(assumptions(settings, period, is_given=settings_file is not None), err=True)
    if sizes:
        click.echo(SIZE_ASSUMPTIONS.format(**options), err=True)
    for warning in _warnings(candidates, results):
        click.echo(warning, err=True)
    if output != "table":
        data = [_data(result, with_changes=changes) for result in results]
        click.echo(to_json(data) if output == "json" else to_yaml(data), nl=False)
        return
    span, syncs = (trace.end - trace.start) / 3600, results[0].figures.syncs
    click.echo(
        f"{span:,.1f} hours of load from {_time(trace.start)}, {syncs:,} {'sync' if syncs == 1 else 'syncs'}"
    )
    Console().print(_table(results))
    if changes:
        _list_changes(changing, sizes)


SIZE_ASSUMPTIONS = (
    "VPAs: usage is as recorded, whatever the size of a pod; a resize takes 2 s, a node always has room, an evicted pod is gone at "
    "once and its replacement is ready after {start_seconds:g} s; a container above its memory limit is killed"
)


def _picture(first: AnyCandidate, results: Sequence[AnyResults], trace: Trace, model: Model) -> str:
    """Return the picture of replicas, or else of what VPAs requested."""
    if isinstance(first, Candidate):
        return render_chart(first, [found for found in results if isinstance(found, Results)], trace, model)
    sizes = [result for result in results if isinstance(result, SizeResults)]
    resources = [name for name in (CPU, MEMORY) if any(result.uses(name) for result in sizes)]
    return render_sizes(sizes, resources, trace)


simulate.params += options_for(SIMULATE)


def _documents(files: tuple[str, ...]) -> Sequence[Document]:
    bundle = read_bundle(files)
    if bundle.has_unreadable:
        raise CommandError(
            "nothing was simulated because not every input could be read", exit_code=CANNOT_READ
        )
    return bundle.documents


def _warnings(candidates: Sequence[AnyCandidate], results: Sequence[AnyResults]) -> Iterator[str]:
    """Yield what went wrong in a backtest, and where it differs from the cluster."""
    for result in results:
        if result.figures.failure:
            yield f"{result.name}: {result.figures.failure}"
    for result in results:
        for pod, reason in result.figures.unchanged.items() if isinstance(result, SizeResults) else ():
            yield f"{result.name}: {pod} requests less than it uses: {reason}"
    for candidate in candidates:
        if isinstance(candidate, Candidate):
            yield from (f"{candidate.name}: {text}" for text in ignored_annotations(candidate.hpa))
            if is_dry_run(candidate.hpa):
                yield f"{candidate.name} says {MODE_ANNOTATION}: {DRY_RUN}; it is simulated as if it scaled"


def _trace(path: Path) -> Trace:
    try:
        return Trace.from_csv(path)
    except TraceError as error:
        raise CommandError(str(error)) from error


def _list_changes(hpas: Sequence[Results], sizes: Sequence[SizeResults]) -> None:
    for result in hpas:
        for change in result.changes:
            decided = change.decision
            click.echo(
                f"{result.name}  {_time(decided.now)}  {decided.current} -> {decided.desired}  {decided.because}"
            )
    for sized in sizes:
        for at, text in sized.life.log:
            click.echo(f"{sized.name}  {_time(sized.life.start + at)}  {text}")


def _table(results: Sequence[AnyResults]) -> Table:
    """Return a table with the figures as rows and the candidates as columns."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    (_, *names), *rows = table_of(results)
    table.add_column("")
    for name in names:
        table.add_column(Text(name), justify="right", overflow="fold")
    for title, *cells in rows:
        table.add_row(Text(title), *cells)
    return table


def _data(result: AnyResults, *, with_changes: bool) -> dict[str, Any]:
    """Return the figures as plain data, those of an HPA beside VPAs first."""
    data = ({} if result.hpa is None else asdict(result.hpa.figures)) | asdict(result.figures)
    if not with_changes:
        return data
    if isinstance(result, SizeResults):
        data["changes"] = [
            {"at": _time(result.life.start + at), "what": text} for at, text in result.life.log
        ]
    else:
        data["changes"] = [
            {
                "at": _time(change.decision.now),
                "from": change.decision.current,
                "to": change.decision.desired,
                "reason": change.decision.because,
            }
            for change in result.changes
        ]
    return data


def _time(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"
