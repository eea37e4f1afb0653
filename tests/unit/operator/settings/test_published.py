"""What an operator publishes of its settings, and what readers make of it."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import trimtab
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Listing
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.objects import Lease, LeaseSpec
from trimtab.operator.settings.published import (
    ANNOTATION,
    UnreadableSettings,
    combined,
    find_settings,
    parse_annotation,
    settings_annotation,
)
from trimtab.operator.settings.settings import Settings, declared

PUBLISHED = tuple(each.name for each in declared() if each.decides)
NOW = datetime(2026, 11, 17, 3, 0, tzinfo=UTC)
OTHER = {bool: lambda value: not value, int: lambda value: value + 1, float: lambda value: value + 0.25}


def other_than(value):
    """Return another value of the same type."""
    if isinstance(value, timedelta):
        return value + timedelta(seconds=7)
    if isinstance(value, tuple):
        return (*value, "shop", "web")
    return OTHER[type(value)](value) if type(value) in OTHER else f"{value}x"


@pytest.mark.parametrize("compat", ["", "kubernetes-1.37", "vpa-1.8"])
def test_every_published_setting_comes_back_as_it_was(compat):
    changed = Settings.of(
        **{name: other_than(Settings().value(name)) for name in PUBLISHED if name != "compat"}, compat=compat
    )
    read, version = parse_annotation(settings_annotation(changed)[ANNOTATION])
    assert {name: read.value(name) for name in PUBLISHED} == {name: changed.value(name) for name in PUBLISHED}
    assert version == trimtab.__version__


@pytest.mark.parametrize("compat", ["vpa-1.8", "kubernetes-1.37"])
def test_a_default_is_the_default_with_these_rules(compat):
    """A value that was equal to the default without rules was left out, and read as the default with them."""
    assert len(settings_annotation(Settings.of(compat=compat))[ANNOTATION]) < 100
    own = Settings().replace(compat=compat)
    read, _ = parse_annotation(settings_annotation(own)[ANNOTATION])
    assert {name: read.value(name) for name in PUBLISHED} == {name: own.value(name) for name in PUBLISHED}


def test_defaults_take_no_room_and_only_what_decides_is_there():
    assert len(settings_annotation(Settings())[ANNOTATION]) < 100
    texts = {each.name for each in declared() if each.type is str and not each.decides}
    given: dict[str, Any] = dict.fromkeys(texts, "s3cret")
    assert "s3cret" not in settings_annotation(Settings.of(**given))[ANNOTATION]
    assert not {name for name in PUBLISHED if NEVER.search(name)}


NEVER = re.compile("password|token|username|address|file|key|cert|url|kubeconfig|context")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        '{"settings":{"dry-run":"perhaps"}}',
        '{"settings":{"horizontal-pod-autoscaler-sync-period":"soon"}}',
        '{"settings":{"horizontal-pod-autoscaler-tolerance":"a bit"}}',
    ],
)
def test_what_cannot_be_read_is_said(text):
    with pytest.raises(UnreadableSettings, match="cannot be read"):
        parse_annotation(text)


def test_flags_of_a_newer_operator_are_left_out():
    read, version = parse_annotation('{"version":"99","settings":{"no-such-flag":"1","dry-run":"true"}}')
    assert (read.dry_run, version) == (True, "99")


def Leases(*leases: Lease, error: Exception | None = None) -> Any:
    """Return a client that knows one list."""
    return _Leases(*leases, error=error)


class _Leases:
    """A client that knows one list."""

    def __init__(self, *leases, error=None):
        self.clock = VirtualClock(NOW)
        self._leases, self._error = leases, error

    async def list(self, _resource, selection):
        assert selection.namespace == "trimtab"
        if self._error is not None:
            raise self._error
        return Listing(self._leases, "1")


def lease(name, settings, *, holder="a", age=1.0):
    return Lease(
        metadata=ObjectMeta(name=name, namespace="trimtab", annotations=settings_annotation(settings)),
        spec=LeaseSpec(
            holder_identity=holder, lease_duration_seconds=15, renew_time=NOW - timedelta(seconds=age)
        ),
    )


def unreadable_lease(name):
    return Lease(metadata=ObjectMeta(name=name, namespace="trimtab", annotations={ANNOTATION: "?"}))


def with_tolerance(tolerance, **more):
    return Settings.of(tolerance=tolerance, **more)


@pytest.mark.parametrize(
    ("leases", "want"),
    [
        pytest.param([lease("x", with_tolerance(0.3))], 0.3, id="the one there is"),
        pytest.param(
            [lease("x", with_tolerance(0.3), holder="", age=1), lease("y", with_tolerance(0.4), age=9)],
            0.4,
            id="one that is held before one that was left",
        ),
        pytest.param(
            [lease("x", with_tolerance(0.3), age=3600), lease("y", with_tolerance(0.4), age=9)],
            0.4,
            id="one that is renewed before one whose holder is gone",
        ),
        pytest.param(
            [
                lease("x", with_tolerance(0.3), age=30),
                lease("y", with_tolerance(0.4, dry_run=True), age=29.9),
            ],
            0.4,
            id="a holder is gone after twice the duration",
        ),
        pytest.param(
            [lease("x", with_tolerance(0.3, dry_run=True), age=1), lease("y", with_tolerance(0.4), age=9)],
            0.4,
            id="one that acts before a dry run",
        ),
        pytest.param(
            [lease("x", with_tolerance(0.3, components=("updater",))), lease("y", with_tolerance(0.4))],
            0.4,
            id="one that runs the loop",
        ),
        pytest.param(
            [Lease(metadata=ObjectMeta(name="x", namespace="trimtab")), lease("y", with_tolerance(0.4))],
            0.4,
            id="one with settings before the Lease of another program",
        ),
        pytest.param(
            [unreadable_lease("x"), lease("y", with_tolerance(0.4))],
            0.4,
            id="one that can be read before one that cannot",
        ),
    ],
)
async def test_the_settings_of_the_operator_that_decides_are_taken(leases, want):
    for order in (leases, leases[::-1]):
        found = await find_settings(Leases(*order), "trimtab", "horizontal", Settings())
        assert found.is_published
        assert found.settings.horizontal.tolerance == want


async def test_a_recommender_is_found_by_its_name():
    hot = Settings.of(components=("recommender",), recommender_name="hot", pod_min_cpu_millicores=5.0)
    plain = Settings.of(components=("recommender",))
    client = Leases(lease("trimtab-recommender-hot", hot), lease("trimtab-recommender", plain))
    found = await find_settings(client, "trimtab", "recommender", Settings(), recommender="hot")
    assert found.settings.estimation.pod_min_cpu_millicores == 5.0
    missing = await find_settings(client, "trimtab", "recommender", Settings(), recommender="cold")
    assert not missing.is_published
    assert "recommender cold" in missing.line


async def test_without_a_right_the_assumption_is_said_with_the_reason():
    error = errors.TransportError("listing leases trimtab: no answer")
    found = await find_settings(Leases(error=error), "trimtab", "horizontal", Settings.of(tolerance=0.2))
    assert found.settings.horizontal.tolerance == 0.2
    assert (
        "settings: assumed, because the operator's Leases in namespace trimtab cannot be read" in found.line
    )


async def test_another_version_and_an_unreadable_note_are_told(caplog):
    old = lease("x", Settings())
    text = old.metadata.annotations[ANNOTATION].replace(trimtab.__version__, "0.0.1")
    renamed = ObjectMeta(name="x", namespace="trimtab", annotations={ANNOTATION: text})
    client = Leases(Lease(metadata=renamed, spec=old.spec), unreadable_lease("y"))
    found = await find_settings(client, "trimtab", "horizontal", Settings())
    assert "which is version 0.0.1" in found.line
    assert "Lease trimtab/y" in caplog.text


async def test_sizes_go_by_the_recommender_and_updates_by_the_updater():
    recommending = Settings.of(
        components=("recommender",), recommendation_margin_fraction=1.0, min_replicas=9
    )
    updating = Settings.of(components=("updater",), min_replicas=5)
    client = Leases(lease("r", recommending), lease("u", updating))
    one = await find_settings(client, "trimtab", "recommender", Settings())
    other = await find_settings(client, "trimtab", "updater", Settings())
    found = combined(one, other)
    assert (
        found.settings.estimation.recommendation_margin_fraction,
        found.settings.updater.min_replicas,
    ) == (1.0, 5)
    assert found.is_published
    half = combined(one, replace(other, is_published=False))
    assert not half.is_published


async def test_what_is_assumed_is_said_once_and_with_its_numbers():
    nobody = Leases()
    one = await find_settings(nobody, "trimtab", "recommender", Settings())
    other = await find_settings(nobody, "trimtab", "updater", Settings())
    line = combined(one, other).line
    assert line.startswith("settings: assumed, for the recommender because no operator")
    assert line.count("assumed, ") == 1
    assert "Assumed: CPU percentile 0.9" in line
    assert "gates at their defaults" in line
    held = await find_settings(
        Leases(lease("r", Settings.of(components=("recommender",)))),
        "trimtab",
        "recommender",
        Settings(),
    )
    mixed = combined(held, other).line
    assert mixed.startswith("settings: for the recommender of the operator that holds Lease trimtab/r")
    assert "for the updater assumed, because" in mixed
    assert "percentile" not in mixed


def test_names_of_plugins_are_not_published_so_that_no_lease_can_load_code():
    (text,) = settings_annotation(Settings.of(plugins=("example.com/NotDraining",))).values()
    assert "NotDraining" not in text
    forged = text.replace("{", '{"plugins": ["example.com/NotDraining"], ', 1)
    assert parse_annotation(forged)[0].plugins == ()
