"""Settings are found in their groups by unique names, and some follow from others."""

import re
from collections import Counter
from datetime import timedelta

import pytest

from trimtab.decide.horizontal.rules import Rules
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.settings.settings import LOOPS, Settings, declared


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param(Settings(), "trimtab-horizontal", id="by default"),
        pytest.param(
            Settings.of(components=("recommender",)), "trimtab-recommender", id="another loop alone"
        ),
        pytest.param(
            Settings.of(components=("updater", "recommender")), "trimtab-recommender", id="whatever the order"
        ),
        pytest.param(
            Settings.of(components=("dashboard", "horizontal")),
            "trimtab-horizontal",
            id="with what needs no lease",
        ),
        pytest.param(Settings.of(components=("adapter",)), "trimtab-adapter", id="only what needs no lease"),
        pytest.param(Settings.of(leader_elect_resource_name="mine"), "mine", id="as given"),
        pytest.param(
            Settings.of(leader_elect_resource_name="mine", recommender_name="hot", dry_run=True),
            "mine-dry-run",
            id="as given, but for a dry run",
        ),
        pytest.param(
            Settings.of(components=("recommender", "admission"), recommender_name="hot"),
            "trimtab-recommender-hot",
            id="a second recommender waits for no other",
        ),
        pytest.param(
            Settings.of(components=("recommender",), recommender_name="Hot Shard"),
            "trimtab-recommender-hot-shard-0ae1837d",
            id="a name that a Lease cannot have",
        ),
        pytest.param(
            Settings.of(components=("recommender", "updater"), recommender_name="hot"),
            "trimtab-recommender",
            id="beside other loops it shares their Lease, or two updaters would work",
        ),
        pytest.param(
            Settings.of(dry_run=True), "trimtab-horizontal-dry-run", id="a look takes no turn of the living"
        ),
    ],
)
def test_processes_with_other_loops_have_leases_of_their_own(settings, want):
    assert settings.lease_name == want


def test_a_span_of_checkpoints_that_was_given_counts_with_compat_too():
    """N17: with --compat it was ignored."""
    assert Settings.of().recommender.checkpoints_interval == timedelta(minutes=5)
    assert Settings.of(compat="kubernetes-1.36").recommender.checkpoints_interval == timedelta()
    given = {"compat": "kubernetes-1.36", "checkpoints_interval": timedelta(minutes=7)}
    assert Settings.of(**given).recommender.checkpoints_interval == timedelta(minutes=7)


def test_the_help_names_every_component():
    """N20: the adapter was missing."""
    (components,) = (each for each in declared() if each.name == "components")
    assert set(components.help.partition(":")[2].strip(" .").split(", ")) == {*LOOPS, "dashboard", "adapter"}


def test_no_two_settings_have_the_same_name():
    """A flat mapping of names to values says which setting of which group is meant."""
    names = Counter(name for each in declared() for name in (each.name, each.flag))
    assert {name for name, times in names.items() if times > 1} == set()


def test_values_are_placed_in_their_groups():
    settings = Settings.of(port=1, sync_period=timedelta(seconds=7), min_replicas=3, storage="prometheus")
    assert settings.port == settings.value("port") == 1
    assert settings.horizontal.sync_period == settings.value("sync_period") == timedelta(seconds=7)
    assert (settings.updater.min_replicas, settings.history.storage) == (3, "prometheus")
    changed = settings.replace(min_replicas=4, dry_run=True)
    assert (changed.updater.min_replicas, changed.dry_run, changed.port) == (4, True, 1)
    assert settings.updater.min_replicas == 3
    with pytest.raises(KeyError):
        Settings.of(no_such_setting=1)


def test_no_password_or_token_is_in_the_repr_of_settings():
    """Log lines and tracebacks hold the repr of values. A file with a token is named, its content is not there."""
    values = {
        each.name: f"value-of-{each.name}"
        for each in declared()
        if each.type is str and each.name != "compat"
    }
    shown = repr(Settings.of(**values))
    hidden = {name for name, value in values.items() if repr(value) not in shown}
    assert hidden == {name for name in values if re.search("password$|token$|secret|key$", name)}
    assert hidden


@pytest.mark.parametrize(
    ("compat", "zero", "rulings"),
    [
        ("", True, Rules.TRIMTAB),
        ("vpa-1.8", True, Rules.TRIMTAB),
        ("kubernetes-1.36", False, Rules.KUBERNETES_1_36),
        ("kubernetes-1.37", True, Rules.KUBERNETES_1_37),
        ("vpa-1.8, kubernetes-1.37", True, Rules.KUBERNETES_1_37),
    ],
)
def test_compat_selects_the_gates_and_the_rulings_of_a_version(compat, zero, rulings):
    settings = Settings.of(compat=compat)
    assert settings.gates.hpa_scale_to_zero is zero
    assert decision_config(settings).rules == rulings
    assert decision_config(settings).gates == settings.gates


def test_a_gate_that_a_version_has_locked_cannot_be_set_there():
    off = "HPAConfigurableTolerance=false"
    assert not Settings.of(compat="kubernetes-1.36", feature_gates=off).gates.hpa_configurable_tolerance
    with pytest.raises(ValueError, match="HPAConfigurableTolerance is locked to true"):
        decision_config(Settings.of(compat="kubernetes-1.37", feature_gates=off))


def test_two_versions_of_kubernetes_are_rejected():
    with pytest.raises(
        ValueError, match=r"name one version of Kubernetes, not kubernetes-1\.36 and kubernetes-1\.37"
    ):
        Settings.of(compat="kubernetes-1.37,kubernetes-1.36")
