"""Which checks and watches the settings give to the vertical components."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.leases.fence import Fence
from trimtab.operator.process import make_family
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.updater.controller import Updater
from trimtab.operator.vertical.updater.replacement import ReplacementCheck
from trimtab.operator.vertical.wiring import VerticalRuntime, _UpdatingShard, make_recommender, make_updater
from trimtab_lab.apiserver.server import Server


def play(scenario: Callable[[VerticalRuntime], Awaitable[Any]], **settings: Any) -> Any:
    clock = VirtualClock()
    made = Settings.of(**{"components": ("updater",), **settings})

    async def main() -> Any:
        async with Server(clock, seed=1) as server:
            client = Client(clock, InProcessTransport(server), seed=1)
            fence: Fence | None = make_family(client, made, "one") if made.leases.shards > 1 else None
            site = VerticalRuntime(Runtime(clock, client, made, fence=fence))
            try:
                return await scenario(site)
            finally:
                await site.runtime.close()

    return clock.run(main())


async def check_of(site: VerticalRuntime) -> ReplacementCheck | None:
    return make_updater(site)._deps.replacement_check()


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param({}, (True, "free", True), id="by default"),
        pytest.param({"watch_namespaces": ("a",)}, (True, "free", False), id="not all pods are seen"),
        pytest.param({"replacement_check": "none"}, (False, "free", True), id="nodes only"),
        pytest.param({"node_fit": "none"}, (True, "none", True), id="dry runs only"),
        pytest.param({"replacement_check": "none", "node_fit": "none"}, None, id="neither"),
        pytest.param({"compat": "vpa-1.8"}, None, id="as upstream"),
    ],
)
def test_what_is_checked_before_an_eviction(settings, want):
    check = play(check_of, **settings)
    found = None if check is None else (check.creates, check.node_fit, check.sees_all_pods)
    assert found == want


@pytest.mark.parametrize(
    ("check", "want"),
    [("probe", "AdmissionProbe"), ("lease", "LeaseCheck"), ("none", "_assume_webhook_works")],
)
def test_how_the_webhook_is_checked(check, want):
    async def scenario(site: VerticalRuntime) -> Any:
        found: Any = make_updater(site)._deps.webhook_check
        if check == "none":
            assert await found() is None
        return found

    found = play(scenario, admission_check=check)
    assert want in repr(found)


def test_a_check_that_is_not_known_is_refused_at_the_start():
    async def scenario(site: VerticalRuntime) -> Updater:
        return make_updater(site)

    with pytest.raises(ValueError, match="--node-fit=some is not known"):
        play(scenario, node_fit="some")


@pytest.mark.parametrize(
    ("components", "sizes"),
    [
        (("recommender",), False),
        (("roles",), False),
        (("recommender", "roles"), False),
        (("updater",), True),
        (("recommender", "admission"), True),
    ],
)
def test_limit_ranges_are_watched_by_components_that_size_pods(components, sizes):
    async def scenario(site: VerticalRuntime) -> set[str]:
        return {cache.resource.plural for cache in site.view.all_caches()}

    assert ("limitranges" in play(scenario, components=components)) is sizes


def test_only_the_updating_shard_waits_for_the_updater():
    async def scenario(site: VerticalRuntime) -> None:
        updater = make_updater(site)
        shard = _UpdatingShard(updater)
        assert not shard.is_shard_busy(0)
        updater.is_stepping = True
        assert shard.is_shard_busy(0)
        assert not shard.is_shard_busy(1)

    play(scenario)


@pytest.mark.parametrize("is_error", [True, False])
def test_answers_of_the_metrics_api_are_counted(is_error):
    async def scenario(site: VerticalRuntime) -> float | None:
        make_recommender(site)._deps.usage._count(is_error)
        labels = {"is_error": str(is_error).lower(), "client_name": "metrics.k8s.io"}
        return site.registry.get_sample_value("vpa_recommender_metric_server_responses", labels)

    assert play(scenario, components=("recommender",)) == 1.0


def test_held_shards_are_counted():
    async def scenario(site: VerticalRuntime) -> tuple[float | None, bool]:
        loop = make_recommender(site)
        return site.registry.get_sample_value("trimtab_shards_held"), loop in site.fence._users  # type: ignore[attr-defined]  # shards

    assert play(scenario, components=("recommender",), shards=3) == (0.0, True)
