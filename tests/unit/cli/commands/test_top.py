"""`trimtab top`: one row per autoscaler, ours and the cluster's own told apart."""

import pytest

from trimtab.cli.commands.top import notes_of, reason_of, rows_of
from trimtab.cli.operator_settings import Choice, settings_for
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.lab.apiserver.server import Server
from trimtab.model.crds import all_crds
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, HpaCondition
from trimtab.operator.horizontal.inputs.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.process import make_elector
from trimtab.operator.settings.settings import Settings

CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", Json, False
)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)
NO_SETTINGS = Settings()
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def rows(*kinds, crds=True, annotations=None, settings=NO_SETTINGS):
    """Return the rows of a cluster that has an HPA named web of each of these kinds."""
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            client = Client(clock, InProcessTransport(server, headers=headers), seed=1)
            for crd in all_crds() if crds else ():
                await client.create(CRDS, crd)
            for kind in kinds:
                body = {
                    "metadata": {"name": "web", "annotations": annotations or {}},
                    "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3},
                }
                body |= {"apiVersion": kind.api_version, "kind": kind.kind}
                await client.create(kind.untyped(), body, "default")
            return await rows_of(client, "", settings)

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
    assert [(one["active"], one["reason"]) for one in rows(OWN_HPAS)] == [("Unknown", "not decided yet")]


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
    assert row["reason"].startswith(f"UnknownAnnotation: annotation {annotation} is '{value}'")


def test_two_different_strategies_are_seen_with_their_reason():
    old = "autoscaling.alpha.kubernetes.io/pod-selection-strategy"
    both = {"autoscaling.trimtab.dev/selection-strategy": "OwnerReference", old: "LabelSelector"}
    settings = Settings.of(feature_gates="HPASelectionStrategy=true")
    (row,) = rows(NATIVE_HPAS, annotations=both, settings=settings)
    assert row["mode"] == "DryRun (OwnerReference or LabelSelector?)"
    assert f"annotation {old} is 'LabelSelector'" in row["reason"]


def test_a_misspelt_strategy_is_of_no_account_while_its_gate_is_off():
    misspelt = {"autoscaling.trimtab.dev/selection-strategy": "ownerreference"}
    assert [one["mode"] for one in rows(NATIVE_HPAS, annotations=misspelt)] == [""]


def notes(*, namespace="", **settings):
    """Return the notes of a cluster whose operator has these settings; None: there is no operator."""
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            client = Client(clock, InProcessTransport(server, headers=headers), seed=1)
            if settings:
                await client.create(NAMESPACES, {"metadata": {"name": "trimtab"}})
                await make_elector(client, Settings.of(**settings), "one", lambda _leads: None).step()
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
    [("ScaleDownStabilized", "ScaleDownStabilized"), ("ReadyForNewScale", "TooManyReplicas")],
)
def test_a_window_that_holds_is_the_reason_and_not_the_bound_that_cut_what_it_remembers(able, told):
    """W1 in `top`: an idle workload at its maximum was told to need more."""
    conditions = (
        HpaCondition(type="AbleToScale", status="True", reason=able, message="m"),
        HpaCondition(type="ScalingLimited", status="True", reason="TooManyReplicas", message="m"),
    )
    hpa = HorizontalPodAutoscaler(status=HorizontalPodAutoscalerStatus(conditions=conditions))
    assert reason_of(hpa) == f"{told}: m"
