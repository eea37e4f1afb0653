"""Declarations, and the defaults with --compat. All other defaults are in docs/reference/flags.md, which a test holds."""

from datetime import timedelta
from typing import Any

import pytest

from trimtab.operator.settings.declare import (
    Form,
    Setting,
    reject_bad_values,
    setting,
    settings_group,
    settings_in,
)
from trimtab.operator.settings.settings import Settings, compat_defaults, declared
from trimtab.operator.settings.vertical import STATUS_LEASE_NAME, STATUS_LEASE_NAMESPACE


def test_upstreams_status_lease():
    assert (STATUS_LEASE_NAMESPACE, STATUS_LEASE_NAME) == ("kube-system", "vpa-admission-controller")


VPA_DEFAULTS: dict[str, Any] = {
    "admission_check": "lease",
    "cpu_integer_post_processor_enabled": False,
    "max_evictions_per_minute": 0,
    "max_evicted_share_per_minute": 0.0,
    "max_missing_pods": 0,
    "fruitless_evictions": 0,
    "refused_eviction_backoff": timedelta(),
    "checkpoints_interval": timedelta(),
    "webhook_naming": "upstream",
    "include_kube_system": True,
}
HPA_DEFAULTS: dict[str, Any] = {
    "status_max_age": timedelta(),
    "look_period": timedelta(),
    "checkpoints_interval": timedelta(),
    "include_kube_system": True,
}


@pytest.mark.parametrize(
    ("compat", "want"),
    [
        ("vpa-1.8", VPA_DEFAULTS),
        ("kubernetes-1.36", HPA_DEFAULTS),
        ("kubernetes-1.37", HPA_DEFAULTS),
        ("kubernetes-1.37,vpa-1.8", {**HPA_DEFAULTS, **VPA_DEFAULTS}),
    ],
)
def test_defaults_with_upstreams_rules(compat, want):
    """Upstream has no limit per minute, no limit of missing pods and no pause after fruitless evictions."""
    plain, with_rules = Settings(), Settings.of(compat=compat)
    assert with_rules == plain.replace(compat=compat, **want)
    assert compat_defaults(compat) == {
        each.name: with_rules.value(each.name) for each in declared() if each.compat
    }


def test_a_given_value_wins_over_the_default_of_upstreams_rules():
    given = {name: Settings().value(name) for name in {**VPA_DEFAULTS, **HPA_DEFAULTS}}
    assert Settings.of(compat="kubernetes-1.37,vpa-1.8", **given) == Settings().replace(
        compat="kubernetes-1.37,vpa-1.8"
    )


@settings_group("Some", read_by="horizontal")
class Declared:
    """A group with a setting of each kind."""

    plain: int = setting(3, help="Help.", least=1, most=5)
    named: timedelta = setting("1m", "--its-own", read_by="a b", group="Other", help="Help.", why="Because.")
    wait: timedelta = setting("5s", least="1s", most="1m", help="Help.")
    names: tuple[str, ...] = setting((), help="Help.", form=Form("[a-z]+", "a word"))
    hidden: str = setting("", is_secret=True, help="Help.")


def test_a_declaration_is_completed_by_its_name_its_type_and_its_group():
    plain, named, wait, names, _ = settings_in(Declared())
    assert plain == Setting(
        name="plain", type=int, default=3, help="Help.", group="Some", read_by=frozenset({"horizontal"}),
        flag="--plain", least=1, most=5,
    )  # fmt: skip
    assert (named.flag, named.key, named.environment) == ("--its-own", "its-own", "TRIMTAB_ITS_OWN")
    assert (named.default, named.read_by, named.group) == (timedelta(minutes=1), frozenset("ab"), "Other")
    assert (wait.least, wait.most, wait.bounds) == (timedelta(seconds=1), timedelta(minutes=1), "1s to 1m")
    assert (named.bounds, plain.bounds) == ("0s or more", "1 to 5")
    assert (names.type, names.is_list) == (tuple, True)
    assert plain.why == "Upstream's default."


def test_only_a_secret_is_left_out_of_the_repr():
    assert repr(Declared()) == (
        "Declared(plain=3, named=datetime.timedelta(seconds=60), wait=datetime.timedelta(seconds=5), names=())"
    )


@pytest.mark.parametrize(
    "fact",
    [{"decides": True}, {"default": "changeme"}, {"choices": ("a", "b")}, {"type": int}],
    ids=lambda fact: next(iter(fact)),
)
def test_a_secret_cannot_be_published_or_shown(fact):
    with pytest.raises(TypeError, match="a secret is a text without default, and is never published"):
        Setting(**{"default": "", "help": "Help.", "is_secret": True, **fact})


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("plain", 0, "--plain=0: use 1 to 5"),
        ("plain", 6, "--plain=6: use 1 to 5"),
        ("wait", timedelta(milliseconds=900), "--wait=0.9s: use 1s to 1m"),
        ("wait", timedelta(seconds=61), "--wait=1m1s: use 1s to 1m"),
        ("named", timedelta(seconds=-1), "--its-own=-1s: use 0s or more"),
    ],
)
def test_a_bound_holds_for_numbers_and_durations(name, value, problem):
    with pytest.raises(ValueError, match=problem):
        reject_bad_values(Declared(**{name: value}))
