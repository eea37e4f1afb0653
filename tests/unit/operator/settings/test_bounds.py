"""Values that cannot be meant are refused at start, with the flag's name."""

import re
from datetime import timedelta

import pytest

from trimtab import cli
from trimtab.operator.settings.bounds import reject_bad_namespaces, reject_out_of_range
from trimtab.operator.settings.settings import Settings


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
    ],
)
def test_a_value_out_of_bounds_is_refused(settings, flag):
    with pytest.raises(ValueError, match=flag):
        reject_out_of_range(settings)


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings.of(eviction_tolerance=0.0, min_replicas=0, recommendation_margin_fraction=0.0)],
)
def test_bounds_themselves_are_allowed(settings):
    reject_out_of_range(settings)


@pytest.mark.parametrize("namespace", ["Shop", "shop/web", "-shop", "a.b", "x" * 64, "*"])
@pytest.mark.parametrize(
    ("name", "flag"),
    [("watch_namespaces", "--watch-namespaces"), ("ignored_namespaces", "--ignored-vpa-object-namespaces")],
)
def test_a_text_that_cannot_be_a_namespace_is_refused(name, flag, namespace):
    """The operator started and found nothing there."""
    with pytest.raises(ValueError, match=re.escape(f"{flag}: {namespace!r} cannot be a namespace")):
        reject_bad_namespaces(Settings.of(**{name: ("shop", namespace)}))


def test_namespaces_are_allowed():
    reject_bad_namespaces(Settings())
    reject_bad_namespaces(Settings.of(watch_namespaces=("shop", "a-1"), ignored_namespaces=("kube-system",)))


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
