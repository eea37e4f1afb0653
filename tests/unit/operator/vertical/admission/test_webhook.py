"""The webhook component in virtual time: when it refreshes, renews its Lease, and what it does after a failure."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.unit.operator.horizontal.fakes import api_error
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission import webhook as module
from trimtab.operator.vertical.admission.certificates import Serving, make_material
from trimtab.operator.vertical.admission.webhook import REFRESH_SECONDS, AdmissionWebhook
from trimtab.operator.vertical.metrics import AdmissionMetrics
from trimtab.serving.certificates import CertificateError

NAMES = ("trimtab-webhook.trimtab.svc",)
GONE = api_error(errors.NotFound, 404)
DOWN = errors.TransportError("no answer")


class World:
    """A webhook, and all that it asks, in one."""

    def __init__(self, monkeypatch: Any, *, is_dry_run: bool = False, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.is_dry_run = is_dry_run
        self.has_synced = True
        self.failures: dict[str, list[Exception]] = {}
        self.done: list[tuple[str, float]] = []
        self.lease: Any = None
        self.view_problems: dict[str, str] = {}
        material = make_material(NAMES, self.clock.now())
        self.serving = Serving(material.leaf, material.bundle)
        itself: Any = self
        self.vpas: Any = self
        monkeypatch.setattr(module, "served", self._served)
        self.webhook = AdmissionWebhook(
            itself,
            itself,
            Settings.of(**settings),
            AdmissionMetrics(CollectorRegistry()),
            certificates=itself,
        )
        monkeypatch.setattr(self.webhook, "_registration", itself)

    @asynccontextmanager
    async def _served(self, *_args: Any, **_options: Any) -> Any:
        yield 8443

    def _do(self, what: str) -> None:
        self.done.append((what, round(self.clock.monotonic(), 3)))
        if self.failures.get(what):
            raise self.failures[what].pop(0)

    def times(self, what: str) -> list[float]:
        return [at for done, at in self.done if done == what]

    async def current(self) -> Serving:
        self._do("certificate")
        return self.serving

    async def ensure(self, _bundle: bytes) -> None:
        self._do("register")

    async def patch(self, _resource: Any, _name: str, _namespace: str, body: Any) -> None:
        self._do("renew")
        self.lease = body

    async def create(self, resource: Any, body: Any, _namespace: str = "") -> Any:
        if resource.kind == "SelfSubjectReview":
            return {}
        self._do("create")
        self.lease = body
        return body

    def subscribe(self, _subscriber: Any) -> None:
        """Tell nobody."""

    async def wait_synced(self) -> None:
        self._do("synced")

    def problems(self) -> dict[str, str]:
        return self.view_problems

    def warnings(self) -> dict[str, str]:
        return {}

    def run(self, seconds: float) -> None:
        async def main() -> None:
            running = asyncio.ensure_future(self.webhook.run())
            await self.clock.sleep(seconds)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        self.clock.run(main())


@pytest.mark.parametrize(
    ("interval", "refreshed", "renewed"),
    [
        pytest.param(10, [0, 10, 20, 30], [0, 10, 20, 30], id="upstream's interval"),
        pytest.param(4, [0, 4, 8, 12, 16, 20, 24, 28, 32], [0, 4, 8, 12, 16, 20, 24, 28, 32], id="shorter"),
        pytest.param(30, [0, 10, 20, 30], [0, 30], id="longer"),
        pytest.param(25, [0, 10, 20, 30], [0, 20], id="early rather than late"),
    ],
)
def test_certificate_and_lease_are_renewed_in_their_intervals(interval, refreshed, renewed, monkeypatch):
    world = World(monkeypatch, status_lease_update_interval=timedelta(seconds=interval))
    world.run(35)
    assert world.times("register") == refreshed
    assert world.times("renew") == renewed
    assert world.webhook.health() == {}


@pytest.mark.parametrize("seconds", [0, -1])
def test_an_interval_of_nothing_is_refused(seconds, monkeypatch):
    with pytest.raises(ValueError, match=r"--status-lease-update-interval=.*: use more than 0"):
        World(monkeypatch, status_lease_update_interval=timedelta(seconds=seconds))


def test_a_missing_lease_is_created_with_holder_and_duration(monkeypatch):
    world = World(monkeypatch)
    world.failures["renew"] = [GONE]
    world.run(5)
    assert [what for what, _ in world.done if what in {"renew", "create"}] == ["renew", "create"]
    assert world.lease["spec"]["leaseDurationSeconds"] == 60
    assert world.lease["spec"]["holderIdentity"] == "trimtab"


@pytest.mark.parametrize(
    ("what", "failure", "warned"),
    [
        pytest.param("renew", DOWN, "lease", id="the Lease"),
        pytest.param("register", DOWN, "certificate", id="the configuration"),
        pytest.param("register", ValueError("no bundle"), "certificate", id="a configuration that is none"),
        pytest.param("certificate", DOWN, "certificate", id="the certificate"),
    ],
)
def test_what_fails_is_a_warning_and_repeated_with_the_next_refresh(what, failure, warned, monkeypatch):
    """A webhook that answers must not become unready, or the API server would call none."""
    world = World(monkeypatch, status_lease_update_interval=timedelta(seconds=30))
    world.run(1)
    world.failures[what] = [failure]
    world.webhook._renewed_at = None
    world.clock.run(world.webhook.refresh())
    assert set(world.webhook.warnings()) == {warned}
    assert world.webhook.health() == {}
    world.clock.run(world.webhook.refresh())
    assert world.webhook.warnings() == {}


def test_the_first_certificate_is_asked_for_until_the_cluster_stores_it(monkeypatch, caplog):
    world = World(monkeypatch)
    world.failures["certificate"] = [GONE, GONE, DOWN]
    world.run(REFRESH_SECONDS - 1)
    assert "create it: kubectl create namespace" in world.webhook.health()["certificate"]
    assert world.times("synced") == []
    world.failures["certificate"] = [GONE, GONE, DOWN]
    world.done.clear()
    world.run(3 * REFRESH_SECONDS + 1)
    assert len(world.times("synced")) == 1
    assert world.webhook.health() == {}
    warned = [entry.getMessage() for entry in caplog.records if "no certificate" in entry.getMessage()]
    assert len(warned) == 2, "each reason once"
    assert "kubectl" not in warned[1]


def test_a_dry_run_writes_nothing(monkeypatch):
    world = World(monkeypatch, is_dry_run=True)
    world.run(25)
    assert {what for what, _ in world.done} == {"certificate", "synced"}


def test_an_installation_may_own_the_configurations(monkeypatch):
    world = World(monkeypatch, register_webhook=False)
    world.run(25)
    assert world.times("register") == []
    assert len(world.times("renew")) == 3


def test_an_expired_certificate_ends_the_component(monkeypatch):
    world = World(monkeypatch)
    world.clock.advance(3 * 365 * 86400)
    with pytest.raises(CertificateError):
        world.clock.run(world.webhook.run())


def test_incomplete_caches_make_it_unready(monkeypatch):
    world = World(monkeypatch)
    world.run(1)
    world.has_synced, world.view_problems = False, {"pods": "403"}
    assert world.webhook.health() == {"pods": "403"}
    world.has_synced = True
    assert world.webhook.health() == {}
    assert world.webhook.warnings() == {"pods": "403"}
