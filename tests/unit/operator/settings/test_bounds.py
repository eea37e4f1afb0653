"""Values that cannot be meant are refused at start, with the flag's name."""

import re
from datetime import timedelta

import pytest

from trimtab import cli
from trimtab.cluster.leases.family import MOST_SHARDS
from trimtab.operator.settings.settings import Settings, declared, reject_invalid
from trimtab.operator.settings.vertical import MOST_SECONDS


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        (Settings.of(eviction_tolerance=1.5), "--eviction-tolerance"),
        (Settings.of(eviction_tolerance=-0.1), "--eviction-tolerance"),
        (Settings.of(eviction_tolerance=float("nan")), "--eviction-tolerance"),
        (Settings.of(min_replicas=-1), "--min-replicas"),
        (Settings.of(recommendation_margin_fraction=-0.5), "--recommendation-margin-fraction"),
        (Settings.of(recommender_interval=timedelta()), "--recommender-interval"),
        (Settings.of(updater_interval=timedelta(seconds=-1)), "--updater-interval"),
        (Settings.of(sync_period=timedelta(seconds=-1)), "--horizontal-pod-autoscaler-sync-period"),
        (Settings.of(kube_api_burst=float("inf")), "--kube-api-burst"),
    ],
)
def test_a_value_out_of_bounds_is_refused(settings, flag):
    with pytest.raises(ValueError, match=flag):
        reject_invalid(settings)


FLAGS = {each.name: each.flag for each in declared()}
TINY = timedelta(microseconds=1)
PORTS = tuple(each.name for each in declared() if each.name.endswith("port") and each.type is int)


def test_all_ports_are_known():
    assert {"port", "webhook_port", "dashboard_port"} <= set(PORTS)


@pytest.mark.parametrize("port", ["99999", "-1", "65536"])
@pytest.mark.parametrize("flag", ["--port", "--webhook-port", "--dashboard-port"])
def test_a_port_that_is_none_ends_the_start(flag, port, capsys):
    """`run --port 99999` listened on 34463, the rest of a division by 65536."""
    assert cli.answer(["run", f"{flag}={port}", "--kubeconfig=/none"]) == 2
    assert f"{flag}={port}: use 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("eviction_tolerance", 0.0, -0.001),
        ("eviction_tolerance", 1.0, 1.001),
        ("min_replicas", 0, -1),
        ("recommendation_margin_fraction", 0.0, -0.001),
        ("status_visible_change", 0.0, -0.001),
        ("status_max_age", timedelta(), -TINY),
        ("recommender_interval", TINY, timedelta()),
        ("updater_interval", TINY, timedelta()),
        ("admission_lease_timeout", TINY, timedelta()),
        ("status_lease_update_interval", TINY, timedelta()),
        ("webhook_timeout_seconds", 1, 0),
        ("webhook_timeout_seconds", MOST_SECONDS["trimtab"], MOST_SECONDS["trimtab"] + 1),
        *((name, 0, -1) for name in PORTS),
        *((name, 65535, 65536) for name in PORTS),
        ("shards", 1, 0),
        ("shards", MOST_SHARDS, MOST_SHARDS + 1),
    ],
)
def test_a_bound_itself_is_allowed_and_the_next_value_is_not(name, inside, outside):
    reject_invalid(Settings())
    reject_invalid(Settings.of(**{name: inside}))
    with pytest.raises(ValueError, match=FLAGS[name]):
        reject_invalid(Settings.of(**{name: outside}))


def test_upstreams_webhooks_may_take_longer():
    for naming, most in (("trimtab", 3), ("upstream", 30)):
        reject_invalid(Settings.of(webhook_naming=naming, webhook_timeout_seconds=most))
        with pytest.raises(ValueError, match=f"use 1 to {most}"):
            reject_invalid(Settings.of(webhook_naming=naming, webhook_timeout_seconds=most + 1))


def test_each_kind_of_mistake_is_refused():
    reject_invalid(Settings())
    for mistake, flag in (
        ({"storage": "disk"}, "--storage"),
        ({"min_replicas": -1}, "--min-replicas"),
        ({"watch_namespaces": ("a", "B")}, "--watch-namespaces"),
        ({"feature_gates": "NoSuchGate=true"}, "--feature-gates"),
    ):
        with pytest.raises(ValueError, match=flag):
            reject_invalid(Settings.of(**mistake))


@pytest.mark.parametrize("namespace", ["Shop", "shop/web", "-shop", "a.b", "x" * 64, "*"])
@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("watch_namespaces", "--watch-namespaces"),
        ("ignored_namespaces", "--ignored-vpa-object-namespaces"),
    ],
)
def test_a_text_that_cannot_be_a_namespace_is_refused(name, flag, namespace):
    """The operator started and found nothing there."""
    with pytest.raises(ValueError, match=re.escape(f"{flag}: {namespace!r} cannot be a namespace")):
        reject_invalid(Settings.of(**{name: ("shop", namespace)}))


def test_namespaces_are_allowed():
    reject_invalid(Settings())
    reject_invalid(Settings.of(watch_namespaces=("shop", "a-1"), ignored_namespaces=("kube-system",)))


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["adapter", "--config", "pyproject.toml"],
        ["vpa-recommender"],
    ],
    ids=lambda command: command[0],
)
def test_every_program_refuses_it_before_it_connects(command, capsys):
    assert cli.answer([*command, "--watch-namespaces", "Shop"]) == 2
    assert "--watch-namespaces: 'Shop' cannot be a namespace" in capsys.readouterr().err
