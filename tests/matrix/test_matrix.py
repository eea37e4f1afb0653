"""The table of settings is complete and true: by declaration, by what programs read, and by what the chart renders."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.matrix.recording import Recorded, reads, unnoticed
from tests.matrix.table import ANNOTATIONS, ASIDE, COLUMNS, FLAGS, GATES_ROWS, RUN, VALUES, Row
from trimtab.dashboard.sources import operator_settings
from trimtab.install import manifests, set_values
from trimtab.install.names import ENABLED
from trimtab.install.values.table import CHART_VALUES
from trimtab.model.feature_gates import GATES
from trimtab.operator import operator, process
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.settings.published import PUBLISHED, combined, settings_annotation
from trimtab.operator.settings.settings import declared

ROOT = Path(__file__).parents[2]
SOURCE = Path(trimtab.__file__).parent
EVERY_ROW = (*FLAGS, *GATES_ROWS, *ANNOTATIONS)
STILL_OPEN: dict[str, set[str]] = {}
"""Cells that others' work keeps open. One that was closed goes from here and from the table."""

SCHEMA = re.compile(r"^(?:[a-z]+\.)?trimtab\.dev/(?!v\d)[a-z][a-zA-Z-]*$")


def annotations_in_the_code() -> set[str]:
    """Return every annotation and label of ours that the source names."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and SCHEMA.match(node.value):
                found.add(node.value)
    return found


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        pytest.param(FLAGS, [flag.name for _, flag in declared()], id="flags"),
        pytest.param(GATES_ROWS, list(GATES), id="gates"),
        pytest.param(ANNOTATIONS, sorted(annotations_in_the_code()), id="annotations"),
    ],
)
def test_every_setting_has_one_row(rows: tuple[Row, ...], wanted: list[str]) -> None:
    """A new setting without its row fails here."""
    named = Counter(name for row in rows for name in row.settings)
    assert set(wanted) - set(named) == set(), "these settings have no row"
    assert set(named) - set(wanted) == set(), "these rows are about nothing"
    assert {name for name, times in named.items() if times > 1} == set()


@pytest.mark.parametrize("row", EVERY_ROW, ids=lambda row: row.settings[0])
def test_every_cell_names_a_test_that_exists_or_a_reason(row: Row) -> None:
    assert {*row.shown, *row.open} <= set(COLUMNS)
    assert not set(row.shown) & set(row.open)
    for column in COLUMNS:
        cell = row.cell(column)
        if cell.startswith(("open: ", "not applicable: ")):
            assert len(cell.partition(": ")[2].split()) >= 4, f"{column}: say why"
        else:
            file, _, name = cell.partition("::")
            assert name in functions_of(file), f"{column}: there is no {cell}"


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_open_cells_are_counted() -> None:
    found = {name: set(row.open) for row in EVERY_ROW for name in row.settings if row.open}
    assert found == STILL_OPEN


WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"storage": "prometheus", "prometheus_username": "me", "prometheus_address": "http://127.0.0.1:9"},
    {"admission_check": "lease"},
)
"""A flag that is of use only together with another is read only then."""
TOGETHER = {
    "tls_key_file": "tls_cert_file",
    "tls_ca_file": "tls_cert_file",
    "dashboard_address_file": "dashboard_login",
}
"""Read only where the other one has a certain value: a file that exists, or `token`."""


@pytest.fixture(scope="module")
def read_by(tmp_path_factory: pytest.TempPathFactory) -> dict[str, frozenset[str]]:
    """Return what each component reads."""
    directory = Path(tmp_path_factory.mktemp("matrix"))
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        # These look at all settings at once, and honour none of them.
        patch.setattr(process, "settings_annotation", unnoticed(settings_annotation))
        patch.setattr(operator_settings, "combined", unnoticed(combined))
        for program in RUN:
            # Every process checks them at its start; only decisions about HPAs go by them.
            patch.setattr(
                operator,
                "decision_config",
                decision_config if program == "horizontal" else unnoticed(decision_config),
            )
            read: set[str] = set()
            for way in WAYS:
                read |= reads(program, directory, **way)
            found[program] = frozenset(read)
    Recorded.seen.clear()
    return found


@pytest.mark.parametrize("program", RUN)
def test_each_program_reads_the_settings_of_its_cells(
    read_by: dict[str, frozenset[str]], program: str
) -> None:
    """A program that stops reading a setting fails, and so does one that reads what its cell does not name."""
    names = {flag.name: field.name for field, flag in declared()}
    told = {names[name] for row in FLAGS if program in row.run.split() for name in row.settings}
    together = {name for name, first in TOGETHER.items() if name in told and first in read_by[program]}
    assert read_by[program] | together == told


def test_settings_of_the_process_itself_are_read_by_the_command() -> None:
    names = {flag.name: field.name for field, flag in declared()}
    wanted = {names[name] for row in FLAGS if row.run == "process" for name in row.settings}
    tree = ast.parse((SOURCE / "cli" / "commands" / "run.py").read_text())
    read = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("settings", "settings.client")
    }
    assert wanted <= read


def test_what_an_explanation_goes_by_is_published() -> None:
    """A flag that explain honours can be honoured only if the operator publishes it."""
    names = {flag.name: field.name for field, flag in declared()}
    needed = {names[name] for row in FLAGS if "explain" in row.shown for name in row.settings}
    found_by = {"leader_elect_resource_namespace", "shards"}  # where the settings are read, not what they say
    assert needed - found_by <= set(PUBLISHED)
    for name in set(PUBLISHED) - needed:
        (row,) = (row for row in FLAGS for flag in row.settings if names[flag] == name)
        assert "updater" in row.run or row.run in ("admission", "recommender", "horizontal dashboard")


def test_every_value_of_the_chart_has_a_row() -> None:
    assert set(VALUES) == {setting.path for setting in CHART_VALUES}
    for programs, why in VALUES.values():
        assert set(programs.split()) <= set(ENABLED)
        assert why or set(programs.split()) == set(ENABLED)


EVERYTHING = (
    "adapter.enabled=true",
    "adapter.caBundle=Q0E=",
    "dashboard.enabled=true",
    "dashboard.certificateSecret=mine",
    "horizontal.nativeHpas=true",
    "serviceMonitor.enabled=true",
    "kubeStateMetrics.enabled=true",
)
OTHER_VALUES: dict[str, str] = {
    "vertical.ignoredNamespaces": "[search]",
    "featureGates": "{InPlace: true}",
    "watchNamespaces": "shop,web",
    "plugins": "example.com/NotDraining",
    "scalable": "[{group: argoproj.io, resource: rollouts}]",
    "imagePullSecrets": "[{name: mine}]",
    "networkPolicy.apiServerCidrs": "10.0.0.0/8",
    "networkPolicy.apiServerPorts": "[7443]",
    "adapter.caBundle": "Q0E9",
    "compat": "kubernetes-1.36",
    "vertical.admission.failurePolicy": "Fail",
    "vertical.admission.timeoutSeconds": "3",
    "vertical.updater.nodeFit": "none",
    "vertical.updater.admissionCheck": "lease",
    "vertical.updater.maxEvictionsPerMinute": "7",
    "logFormat": "text",
    "image.pullPolicy": "Always",
    "image.digest": f"sha256:{'0a' * 32}",
    "adapter.prometheus": "http://other:9090",
    "adapter.injectCaFrom": "other/certificate",
}
OF_EVERY_PROGRAM: dict[str, str] = {
    "resources": "{limits: {cpu: 2}}",
    "extraArgs": "[--v=3]",
    "extraEnv": "[{name: A, value: b}]",
    "extraEgress": "[{to: [], ports: []}]",
    "tolerations": "[{key: mine, operator: Exists}]",
    "affinity": "{podAffinity: {}}",
    "topologySpreadConstraints": "[{topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]",
    "syncPeriod": "7s",
    "metricsMaxAge": "7s",
    "interval": "7s",
}
"""Other values by the last name of their path."""


def other_value(path: str, default: Any) -> str:
    """Return another value for a setting of the chart, as `--set` takes it."""
    name = path.rpartition(".")[2]
    if path in OTHER_VALUES or name in OF_EVERY_PROGRAM:
        return OTHER_VALUES.get(path) or OF_EVERY_PROGRAM[name]
    if isinstance(default, bool):
        now = f"{path}=true" in EVERYTHING or default
        return str(not now).lower()
    if isinstance(default, int):
        return str(default + 3)
    if isinstance(default, list):
        return "[other]"
    return "{mine: other}" if isinstance(default, dict) else "other"


def by_program(objects: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the objects of each program; RBAC of the whole cluster is told by its name."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ENABLED}
    for one in objects:
        for program in programs_of(one):
            found[program].append(one)
    return found


def programs_of(one: dict[str, Any]) -> Iterator[str]:
    meta = one["metadata"]
    component = meta.get("labels", {}).get("app.kubernetes.io/component", "")
    name = re.sub("-(cluster|in-namespace|pods|settings|leases|webhooks)$", "", str(meta["name"]))
    if "webhooks" in one:
        yield "admission"
    if one["kind"] == "APIService":
        yield "adapter"
    for program in ENABLED:
        if program in (component, name.removeprefix("trimtab-")):
            yield program


@pytest.mark.parametrize("setting", CHART_VALUES, ids=lambda setting: setting.path)
def test_a_value_of_the_chart_reaches_the_programs_of_its_row(setting: Any) -> None:
    """Render with another value, and see whose objects change."""
    before = by_program(manifests(set_values(EVERYTHING)))
    assignment = f"{setting.path}={other_value(setting.path, setting.default)}"
    after = by_program(manifests(set_values([*EVERYTHING, assignment])))
    changed = {program for program in ENABLED if before[program] != after[program]}
    assert changed == set(VALUES[setting.path][0].split())


def test_the_columns_are_those_of_the_programs() -> None:
    assert len(set(COLUMNS)) == len(RUN) + len(ASIDE)
    assert set(RUN) == {*(name for name in ENABLED if name != "roles"), "roles"}
