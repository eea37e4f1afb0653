"""`trimtab top`: one row per autoscaler, ours and the cluster's own told apart."""

import re
import socket

import click
import msgspec
import pytest

from tests.support.cluster import as_admin
from tests.support.objects import CRDS, NAMESPACES
from trimtab.cli.operator_settings import Choice, settings_for
from trimtab.cli.top.command import asked_reasons, lines_of, notes_of, top
from trimtab.cli.top.rows import cells_of, decided_by, hpa_row, reason_of, rows_of, vpa_row
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.decide.horizontal.reasons import ROWS as WORDS
from trimtab.decide.horizontal.reasons import Code
from trimtab.model.crds import all_crds
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, HpaCondition
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAConditionType
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.process import make_family
from trimtab.operator.settings.settings import Settings
from trimtab_lab.apiserver.server import Server

NO_SETTINGS = Settings()
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def rows(*kinds, crds=True, annotations=None, settings=NO_SETTINGS, selector=""):
    """Return the rows of a cluster that has an HPA named web of each of these kinds.

    The kind is its label too.
    """
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            for crd in all_crds() if crds else ():
                await client.create(CRDS, crd)
            for kind in kinds:
                body = {
                    "metadata": {
                        "name": "web",
                        "annotations": annotations or {},
                        "labels": {"group": kind.group},
                    },
                    "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3},
                }
                body |= {"apiVersion": kind.api_version, "kind": kind.kind}
                await client.create(kind.untyped(), body, "default")
            return await rows_of(client, "", settings, selector=selector)

    return clock.run(main())


def test_two_of_one_name_are_told_apart_by_the_word_that_kubectl_takes():
    """While a workload moves over there is one of each, and both rows looked the same."""
    assert [(one["kind"], one["name"], one["target"]) for one in rows(OWN_HPAS, NATIVE_HPAS)] == [
        ("thpa", "web", "Deployment/web"),
        ("hpa", "web", "Deployment/web"),
    ]


def test_a_cluster_without_our_definitions_shows_its_own():
    assert [one["kind"] for one in rows(NATIVE_HPAS, crds=False)] == ["hpa"]


def test_one_that_nobody_decided_about_says_so():
    assert [(one["active"], one["reason"]) for one in rows(OWN_HPAS)] == [("Unknown", "NotDecidedYet")]


def test_a_dry_run_is_seen():
    """W8."""
    dry = {"autoscaling.trimtab.dev/mode": "DryRun"}
    assert [one["mode"] for one in rows(OWN_HPAS, NATIVE_HPAS, annotations=dry)] == ["DryRun", "DryRun"]
    assert [one["mode"] for one in rows(OWN_HPAS)] == [""]


@pytest.mark.parametrize(
    ("settings", "modes"),
    [
        pytest.param(Settings.of(dry_run=True, native_hpas=True), ["DryRun", "DryRun"], id="both"),
        pytest.param(Settings.of(dry_run=True), ["DryRun", ""], id="own only"),
        pytest.param(
            Settings.of(dry_run=True, own_hpas=False, native_hpas=True), ["", "DryRun"], id="native only"
        ),
        pytest.param(Settings.of(dry_run=True, watch_namespaces=("shop",)), ["", ""], id="elsewhere"),
    ],
)
def test_a_dry_run_of_the_operator_is_seen_on_what_it_acts_on(settings, modes):
    """The rows of an operator with --dry-run looked like those of one that scales."""
    assert [one["mode"] for one in rows(OWN_HPAS, NATIVE_HPAS, settings=settings)] == modes


@pytest.mark.parametrize(("name", "value"), [("mode", "dryrun"), ("selection-strategy", "ownerreference")])
def test_a_misspelt_annotation_is_seen_with_its_reason(name, value):
    """A misspelt strategy holds the replicas as a misspelt mode does, and was not seen."""
    annotation = f"autoscaling.trimtab.dev/{name}"
    settings = Settings.of(feature_gates="HPASelectionStrategy=true")
    (row,) = rows(NATIVE_HPAS, annotations={annotation: value}, settings=settings)
    assert row["mode"] == f"DryRun ({value}?)"
    assert row["reason"] == "UnknownAnnotation"
    assert row["message"].startswith(f"annotation {annotation} is '{value}'")


def test_two_different_strategies_are_seen_with_their_reason():
    old = "autoscaling.alpha.kubernetes.io/pod-selection-strategy"
    both = {"autoscaling.trimtab.dev/selection-strategy": "OwnerReference", old: "LabelSelector"}
    settings = Settings.of(feature_gates="HPASelectionStrategy=true")
    (row,) = rows(NATIVE_HPAS, annotations=both, settings=settings)
    assert row["mode"] == "DryRun (OwnerReference or LabelSelector?)"
    assert f"annotation {old} is 'LabelSelector'" in row["message"]


def test_a_misspelt_strategy_is_of_no_account_while_its_gate_is_off():
    misspelt = {"autoscaling.trimtab.dev/selection-strategy": "ownerreference"}
    assert [one["mode"] for one in rows(NATIVE_HPAS, annotations=misspelt)] == [""]


def notes(*, namespace="", **settings):
    """Return the notes of a cluster whose operator has these settings; None: there is no operator."""
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            if settings:
                await client.create(NAMESPACES, {"metadata": {"name": "trimtab"}})
                await make_family(client, Settings.of(**settings), "one").step()
            found = await settings_for(client, "horizontal", Choice("trimtab"))
            return notes_of(found, namespace)

    return clock.run(main())


def test_what_the_operator_leaves_alone_is_noted():
    """T of the matrix: own and native HPAs were shown alike, whatever the operator acts on."""
    assert notes(native_hpas=True) == []
    assert notes(dry_run=True, own_hpas=False) == [
        "the operator runs with --dry-run: no replicas are changed",
        "the operator does not act on rows of kind hpa: it runs without --native-hpas",
        "the operator does not act on rows of kind thpa: it runs with --no-own-hpas",
    ]
    watching = {"native_hpas": True, "watch_namespaces": ("shop", "web")}
    assert notes(**watching) == ["the operator acts in shop, web only"]
    assert notes(**watching, namespace="web") == []


def test_without_published_settings_the_reason_is_noted():
    (note,) = notes()
    assert note.startswith("which of them the operator acts on is not known, because no operator")


@pytest.mark.parametrize(
    ("able", "told"),
    [("ScaleDownStabilized", "HeldByScaleDownWindow"), ("ReadyForNewScale", "AtMaximum")],
)
def test_a_window_that_holds_is_the_reason_and_not_the_bound_that_cut_what_it_remembers(able, told):
    """W1 in `top`: an idle workload at its maximum was told to need more."""
    conditions = (
        HpaCondition(type="AbleToScale", status="True", reason=able, message="m"),
        HpaCondition(type="ScalingLimited", status="True", reason="TooManyReplicas", message="m"),
    )
    hpa = HorizontalPodAutoscaler(status=HorizontalPodAutoscalerStatus(conditions=conditions))
    assert reason_of(hpa) == (told, "m")


@pytest.mark.parametrize(
    ("words", "period"),
    [([], None), (["-w"], 2.0), (["-w", "-n", "shop"], 2.0), (["-w", "5"], 5.0), (["--watch=0.5"], 0.5)],
    ids=str,
)
def test_watching_needs_no_number(words, period):
    assert top.make_context("top", words).params["period"] == period


@pytest.mark.parametrize("words", [["-w", "0"], ["-w", "-1"], ["-w", "often"]], ids=str)
def test_a_period_that_is_none_is_refused(words):
    with pytest.raises(click.UsageError):
        top.make_context("top", words)


def test_labels_select_autoscalers():
    assert [row["kind"] for row in rows(OWN_HPAS, NATIVE_HPAS, selector="group=autoscaling")] == ["hpa"]
    assert [row["kind"] for row in rows(OWN_HPAS, NATIVE_HPAS, selector="group!=autoscaling")] == ["thpa"]


def hpa(name="shop-by-label", current=8, desired=8, **conditions):
    """Return an HPA on CPU and on a queue, whose conditions are True for these reasons."""
    queue = {"name": "queue_length_of_all_messages", "selector": {"matchLabels": {"queue": "mail"}}}
    return wire.convert(
        {
            "metadata": {"name": name, "namespace": "same-labels"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": name},
                "minReplicas": 1,
                "maxReplicas": 8,
                "metrics": [
                    {"type": "External", "external": {"metric": queue, "target": {"averageValue": "30"}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}},
                ],
            },
            "status": {
                "currentReplicas": current,
                "desiredReplicas": desired,
                "currentMetrics": [
                    {"type": "External", "external": {"metric": queue, "current": {"averageValue": "26"}}},
                    {"type": ""},
                ],
                "conditions": [
                    {"type": kind, "status": "True", "reason": reason, "message": "some words on this"}
                    for kind, reason in conditions.items()
                ],
            },
        },
        HorizontalPodAutoscaler,
    )


QUEUE = 'queue_length_of_all_messages{queue="mail"}'
VPA = wire.convert(
    {
        "metadata": {"name": "db-leader", "namespace": "roles"},
        "spec": {
            "targetRef": {"kind": "StatefulSet", "name": "db"},
            "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
        },
        "status": {
            "recommendation": {
                "containerRecommendations": [
                    {"containerName": "db", "target": {"cpu": "247m", "memory": "1938Mi"}}
                ]
            },
            "conditions": [{"type": "RecommendationProvided", "status": "True"}],
        },
    },
    VerticalPodAutoscaler,
)
AT_MAXIMUM = {"AbleToScale": "ReadyForNewScale", "ScalingLimited": "TooManyReplicas"}


def test_metrics_have_value_and_target_in_one_unit():
    """There was no metric, the first that everybody looks for."""
    row = hpa_row("thpa", hpa(**AT_MAXIMUM), NO_SETTINGS)
    assert row["metrics"] == [
        {"name": QUEUE, "current": "26", "target": "30 (avg)"},
        {"name": "cpu", "current": "<unknown>", "target": "50%"},
    ]


@pytest.mark.parametrize(
    ("current", "desired", "conditions", "reason"),
    [
        (8, 8, AT_MAXIMUM, "AtMaximum"),
        (1, 1, AT_MAXIMUM | {"ScalingLimited": "TooFewReplicas"}, "AtMinimum"),
        (4, 8, AT_MAXIMUM, "ScalesUp"),
        (4, 2, {"AbleToScale": "SucceededRescale"}, "ScalesDown"),
        (4, 4, {"AbleToScale": "ScaleUpStabilized"}, "HeldByScaleUpWindow"),
        (4, 4, {"AbleToScale": "ReadyForNewScale", "ScalingLimited": "ScaleUpLimit"}, "HeldByScaleUpRate"),
        (4, 4, {"AbleToScale": "ReadyForNewScale"}, "ReadyForNewScale"),
    ],
)
def test_the_reason_is_the_word_that_explain_uses(current, desired, conditions, reason):
    """It was upstream's "recommended size matches current size"."""
    assert hpa_row("hpa", hpa("web", current, desired, **conditions), NO_SETTINGS)["reason"] == reason


def cpu_at(utilization, replicas=4, **conditions):
    """Return an HPA with a target of 50 %, a tolerance of 30 % upwards, and this usage in its status."""
    words = {"AbleToScale": "ReadyForNewScale", "ScalingActive": "ValidMetricFound"} | conditions
    return wire.convert(
        {
            "spec": {
                "maxReplicas": 8,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}
                ],
                "behavior": {"scaleUp": {"tolerance": "0.3"}},
            },
            "status": {
                "currentReplicas": replicas,
                "desiredReplicas": replicas,
                "currentMetrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "current": {"averageUtilization": utilization}},
                    }
                ],
                "conditions": [
                    {"type": kind, "status": "True", "reason": reason, "message": "m"}
                    for kind, reason in words.items()
                ],
            },
        },
        HorizontalPodAutoscaler,
    )


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ("DirectionUnsureBecauseOfGaps", WORDS[Code.DIRECTION_UNSURE].says),
        ("WithinTolerance", WORDS[Code.WITHIN_TOLERANCE].says),
        ("OfANewerOperator", reason_of(cpu_at(50)).message),
    ],
)
def test_the_stored_reason_of_our_own_kind_comes_before_a_derived_one(stored, message):
    """`top` said ReadyForNewScale where `kubectl get thpa -o wide` had the word of `explain`."""
    found = cpu_at(50)
    found = msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, reason=stored))
    assert reason_of(found) == (stored, message)


def test_the_reason_of_the_operator_comes_before_that_of_the_status():
    decided = decided_by(
        [
            {"uid": "1", "reason": "NoReadyPods", "summary": "stays at 4: no pod is ready"},
            {"uid": "2", "elsewhere": "another replica"},
        ]
    )
    assert decided == {"1": ("NoReadyPods", "stays at 4: no pod is ready")}
    row = hpa_row("thpa", cpu_at(50), NO_SETTINGS, decided["1"])
    assert (row["reason"], row["message"]) == ("NoReadyPods", "stays at 4: no pod is ready")


@pytest.mark.parametrize(
    ("statuses", "shown"),
    [
        pytest.param({}, "2", id="not decided yet"),
        pytest.param({"AbleToScale": "False"}, "2", id="no scale"),
        pytest.param({"AbleToScale": "True", "ScalingActive": "False"}, "2", id="no metric"),
        pytest.param({"AbleToScale": "True", "ScalingActive": "True"}, "2 to 0", id="scales to zero"),
    ],
)
def test_replicas_that_nobody_decided_are_not_shown(statuses, shown):
    """It said "2 to 0" of an HPA whose metrics could not be read: `desiredReplicas` was never set."""
    conditions = tuple(HpaCondition(type=kind, status=status) for kind, status in statuses.items())
    status = HorizontalPodAutoscalerStatus(current_replicas=2, conditions=conditions)
    row = hpa_row("thpa", HorizontalPodAutoscaler(status=status), NO_SETTINGS)
    assert cells_of(row)["replicas"] == shown


def test_a_missing_target_is_named_and_its_replicas_are_unknown():
    """It said "ScaleUnreadable" and 0 replicas, and only the condition named the target."""
    able = HpaCondition(
        type="AbleToScale",
        status="False",
        reason="FailedGetScale",
        message='the HPA controller was unable to get the target\'s current scale: deployments.apps "web" not found',
    )
    status = HorizontalPodAutoscalerStatus(current_replicas=3, desired_replicas=3, conditions=(able,))
    found = wire.convert({"spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}}, HorizontalPodAutoscaler)
    row = hpa_row("thpa", msgspec.structs.replace(found, status=status), NO_SETTINGS)
    assert (row["current"], row["desired"], cells_of(row)["replicas"]) == (None, None, "-")
    assert row["reason"] == "FailedGetScale"
    assert row["message"] == 'its target Deployment/web cannot be read: deployments.apps "web" not found'


def test_a_failure_comes_first():
    conditions = (
        HpaCondition(type="AbleToScale", status="True", reason="SucceededGetScale"),
        HpaCondition(type="ScalingActive", status="False", reason="FailedGetResourceMetric", message="no"),
    )
    failed = HorizontalPodAutoscaler(status=HorizontalPodAutoscalerStatus(conditions=conditions))
    assert reason_of(failed) == ("FailedGetResourceMetric", "no")


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ({"RecommendationProvided": "True"}, "RecommendationProvided"),
        ({"RecommendationProvided": "True", "NoNodeFits": "True"}, "NoNodeFits"),
        ({"RecommendationProvided": "False", "NoPodsMatched": "True"}, "NoPodsMatched"),
        ({"RecommendationProvided": "False"}, "NoRecommendation"),
        ({}, "NoRecommendation"),
    ],
)
def test_the_reason_of_a_vpa_says_what_is_missing(conditions, reason):
    found = wire.convert(
        {"status": {"conditions": [{"type": kind, "status": text} for kind, text in conditions.items()]}},
        VerticalPodAutoscaler,
    )
    assert vpa_row(found)["reason"] == reason


@pytest.mark.parametrize(
    "kind",
    sorted(
        set(VPAConditionType)
        - {
            VPAConditionType.RECOMMENDATION_PROVIDED,
            VPAConditionType.CONFIG_DEPRECATED,
            VPAConditionType.COMPUTED_FOR,
        }
    ),
)
def test_every_problem_of_a_vpa_is_its_reason(kind):
    conditions = [{"type": "RecommendationProvided", "status": "False"}]
    conditions.append({"type": kind, "status": "True", "message": "why"})
    found = wire.convert({"status": {"conditions": conditions}}, VerticalPodAutoscaler)
    assert (vpa_row(found)["reason"], vpa_row(found)["message"]) == (kind, "why")


ROWS = [hpa_row("thpa", hpa(**AT_MAXIMUM), NO_SETTINGS), vpa_row(VPA)]


def test_every_row_is_one_line_for_other_programs():
    """Lines were padded to 240 characters."""
    header, first, second = lines_of(ROWS)
    assert header.split() == ["NAMESPACE", "NAME", "METRICS", "REPLICAS", "MIN-MAX", "MODE", "REASON"]
    cells = [
        "same-labels",
        "thpa/shop-by-label",
        f"{QUEUE} 26/30 (avg), cpu <unknown>/50%",
        "8",
        "1-8",
        "AtMaximum",
    ]
    assert re.split(" {3,}", first) == cells
    cells = ["roles", "tvpa/db-leader", "db cpu=247m memory=1938Mi", "InPlaceOrRecreate"]
    assert re.split(" {3,}", second) == [*cells, "RecommendationProvided"]
    places = [line.index(word) for line, word in ((header, "MODE"), (second, "InPlace"))]
    assert places[0] == places[1]
    assert [re.split(" {3,}", line) for line in lines_of(ROWS, headers=False)] == [
        re.split(" {3,}", line) for line in (first, second)
    ]


def test_at_80_columns_nothing_is_lost_but_a_part_of_long_names():
    """The target column vanished, and the reason was cut to "ReadyFo…"."""
    assert lines_of(ROWS, width=80) == [
        "NAMESPACE     NAME                 METRICS                              REPLICAS",
        "same-labels   thpa/shop-by-label   queue_length_of_al… 26/30 (avg) +1   8",
        "  AtMaximum (1-8 replicas): some words on this",
        "roles         tvpa/db-leader       db cpu=247m memory=1938Mi",
        "  RecommendationProvided (InPlaceOrRecreate)",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_every_width_shows_value_mode_and_reason_whole(width):
    text = "\n".join(lines_of(ROWS, width=width))
    for word in ("26/30 (avg)", "cpu=247m memory=1938Mi", "AtMaximum", "InPlaceOrRecreate", "1-8"):
        assert word in text


@pytest.mark.parametrize("width", [20, 40, 60, 79, 80, 81, 100, 140, 300])
def test_no_line_is_longer_than_the_terminal(width):
    """Messages of conditions and long names made lines wrap at 80 columns."""
    long = {
        **ROWS[0],
        "namespace": "team-of-a-long-name",
        "name": "an-autoscaler-" * 4,
        "message": "words " * 40,
    }
    lines = lines_of([long, *ROWS], width=width)
    assert max(map(len, lines)) <= width
    if 60 <= width <= 140:
        assert lines[2].endswith("…")
        assert lines[2].startswith("  AtMaximum (1-8 replicas): words")


def test_wide_shows_targets_all_metrics_and_messages():
    header, row, _ = lines_of(ROWS, is_wide=True, width=80)
    assert header.split()[-2:] == ["TARGET", "MESSAGE"]
    assert "26/30 (avg), cpu <unknown>/50%" in row
    assert row.endswith("Deployment/shop-by-label   some words on this")


def many_metrics(count):
    """An HPA whose metrics all have short names."""
    spec = {"averageValue": "10"}
    metrics = [
        {"type": "External", "external": {"metric": {"name": name}, "target": spec}}
        for name in "abcd"[:count]
    ]
    found = wire.convert({"metadata": {"name": "w"}, "spec": {"metrics": metrics}}, HorizontalPodAutoscaler)
    return hpa_row("thpa", found, NO_SETTINGS)


@pytest.mark.parametrize(
    ("count", "room", "text"),
    [
        pytest.param(1, 0, "a <unknown>/10 (avg)", id="one"),
        pytest.param(2, 0, "a <unknown>/10 (avg), b <unknown>/10 (avg)", id="two"),
        pytest.param(4, 0, "a <unknown>/10 (avg), b <unknown>/10 (avg) +2", id="two of four"),
        pytest.param(4, 30, "a <unknown>/10 (avg) +3", id="one of four, where two do not fit"),
    ],
)
def test_as_many_metrics_are_shown_as_fit(count, room, text):
    """The second metric of an HPA was shown by -o wide alone."""
    assert cells_of(many_metrics(count), room=room)["metrics"] == text


def test_memory_is_written_as_in_manifests():
    """A recommendation of 920733364 bytes says little to people."""
    row = {**vpa_row(VPA), "recommendation": {"db": {"cpu": "920m", "memory": "920733364"}}}
    assert cells_of(row)["metrics"] == "db cpu=920m memory=878Mi"


def test_an_operator_that_does_not_answer_is_noted_and_hides_no_row():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    decided, (note,) = asked_reasons(f"http://127.0.0.1:{port}")
    assert decided == {}
    assert note.startswith(
        f"reasons follow from the statuses: the operator at http://127.0.0.1:{port} does not answer"
    )
    assert asked_reasons("") == ({}, [])
