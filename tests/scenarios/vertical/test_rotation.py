"""S8 on a real socket: pairs and authorities change under load, and no call is lost."""

import asyncio
import re
import ssl
from dataclasses import replace
from datetime import datetime

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client import generate_latest

from tests.scenarios.vertical.conftest import play_on_real
from tests.scenarios.vertical.stage import Stage
from tests.support.transport import status
from trimtab.operator.vertical.admission import webhook
from trimtab.operator.vertical.admission.certificates import (
    PUBLISHED_BEFORE_USE,
    Serving,
    issue,
    make_authority,
    make_material,
    renewed,
)
from trimtab.operator.vertical.updater.webhook_check import AdmissionProbe
from trimtab.operator.vertical.wiring import make_admission
from trimtab.serving.certificates import KeyPair

NAMES = ("127.0.0.1",)
CALLERS = 8


class Rotating:
    """Certificates that change when a test says so, in the steps that `renewed` takes when their time has come."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self.material = make_material(NAMES, now)

    async def current(self) -> Serving:
        return Serving(self.material.leaf, self.material.bundle)

    def renew_pair(self) -> None:
        self.material = replace(self.material, leaf=issue(self.material.authority, NAMES, self._now))

    def publish_authority(self) -> None:
        self.material = replace(self.material, next_authority=make_authority(self._now))

    def use_authority(self) -> None:
        following = self.material.next_authority
        assert following is not None
        later = max(self._now, following.created_at + PUBLISHED_BEFORE_USE)
        self.material = renewed(self.material, NAMES, later)


@pytest.mark.real
def test_s8_a_change_of_pair_and_authority_under_load_loses_no_call(real_cluster, monkeypatch):
    monkeypatch.setattr(webhook, "REFRESH_SECONDS", 0.1)

    async def scenario(stage: Stage) -> None:
        rotating = Rotating(stage.clock.now())
        async with stage.running() as actor:
            admission = make_admission(actor.site, rotating)
            serving = asyncio.ensure_future(admission.run())
            probe = AdmissionProbe(stage.clock, actor.site.client, stage.own_namespace)
            await stage.wait_for(lambda: _works(probe))
            first = await _serial(admission.port)
            answers: list[str | None] = []
            stop = asyncio.Event()
            callers = [asyncio.ensure_future(_call(probe, answers, stop)) for _ in range(CALLERS)]
            await _until(answers, 100)
            rotating.renew_pair()
            await stage.wait_for(lambda: _serves_another(admission.port, first))
            second = await _serial(admission.port)
            await _until(answers, len(answers) + 100)
            rotating.publish_authority()
            await _until(answers, len(answers) + 100)
            rotating.use_authority()
            await stage.wait_for(lambda: _serves_another(admission.port, second))
            await _until(answers, len(answers) + 100)
            stop.set()
            await asyncio.gather(*callers)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        assert [one for one in answers if one is not None] == []
        assert len(answers) >= 400

    play_on_real(real_cluster, scenario)


def test_rl8_a_pair_is_served_only_after_its_trust_is_published(play_on_sockets, monkeypatch):
    monkeypatch.setattr(webhook, "REFRESH_SECONDS", 0.02)

    async def scenario(stage: Stage) -> None:
        rotating = Rotating(stage.clock.now())
        async with stage.running() as actor:
            admission = make_admission(actor.site, rotating)
            serving = asyncio.ensure_future(admission.run())
            await stage.wait_for(lambda: _is_well(admission))
            first = await _serial(admission.port)
            actor.line.answer = lambda request: (
                status(503, "ServiceUnavailable")
                if request.method == "PATCH" and "webhookconfigurations" in request.path
                else None
            )
            rotating.material = make_material(NAMES, stage.clock.now())
            await stage.wait_for(lambda: _is_ill(admission))
            assert await _serial(admission.port) == first, "the API server does not trust the new one yet"
            assert admission.health() == {}, "the old pair is served and trusted, so the webhook stays ready"
            actor.line.answer = lambda _: None
            await stage.wait_for(lambda: _serves_another(admission.port, first))
            assert admission.warnings() == {}
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    play_on_sockets(scenario)


@pytest.mark.parametrize("damage", ["another key", "no key", "no certificate", "an encrypted key"])
def test_a_pair_that_does_not_belong_together_leaves_the_last_one_in_place(
    play_on_sockets, monkeypatch, damage
):
    """It ended the process with "cannot listen on 127.0.0.1:8080: KEY_VALUES_MISMATCH"."""
    monkeypatch.setattr(webhook, "REFRESH_SECONDS", 0.02)

    async def scenario(stage: Stage) -> None:
        rotating = Rotating(stage.clock.now())
        async with stage.running() as actor:
            admission = make_admission(actor.site, rotating)
            serving = asyncio.ensure_future(admission.run())
            await stage.wait_for(lambda: _is_well(admission))
            first, good = await _serial(admission.port), rotating.material
            rotating.material = replace(
                good, leaf=_damaged(issue(good.authority, NAMES, stage.clock.now()), damage)
            )
            await stage.wait_for(lambda: _has_warned(admission))
            assert not serving.done()
            assert await _serial(admission.port) == first
            assert admission.health() == {}
            rotating.material = good
            rotating.renew_pair()
            await stage.wait_for(lambda: _serves_another(admission.port, first))
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    play_on_sockets(scenario)


def _damaged(pair: KeyPair, damage: str) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    match damage:
        case "another key":
            return replace(pair, key_pem=key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
        case "an encrypted key":
            return replace(
                pair, key_pem=key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"x"))
            )
        case "no key":
            return replace(pair, key_pem=b"nothing")
        case _:
            return replace(pair, certificate_pem=b"nothing")


async def _has_warned(admission: webhook.AdmissionWebhook) -> bool:
    return "certificate" in admission.warnings()


async def _has_a_warning(admission: webhook.AdmissionWebhook) -> bool:
    return bool(admission.warnings())


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param("/leases/", id="the Lease for upstream's updater"),
        pytest.param("webhookconfigurations", id="the webhook configurations"),
        pytest.param("/limitranges", id="a watch whose cache is complete"),
    ],
)
def test_a_webhook_that_can_answer_stays_ready(play_on_sockets, monkeypatch, refused):
    """All replicas left the Service at once when one of these was refused."""
    monkeypatch.setattr(webhook, "REFRESH_SECONDS", 0.02)

    async def scenario(stage: Stage) -> None:
        async with stage.running() as actor:
            admission = make_admission(actor.site, Rotating(stage.clock.now()))
            assert admission.health() == {"certificate": "none is loaded yet"}
            serving = asyncio.ensure_future(admission.run())
            await stage.wait_for(lambda: _is_well(admission))
            actor.line.answer = lambda request: status(403, "Forbidden") if refused in request.path else None
            if refused == "/limitranges":
                actor.line.drop_all()
            await stage.wait_for(lambda: _has_a_warning(admission))
            await admission.refresh()
            assert admission.health() == {}
            assert re.search(rb"trimtab_admission_problem{part=\S+ 1.0", generate_latest(actor.site.registry))
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    play_on_sockets(scenario)


def test_a_cluster_that_stores_no_certificate_leaves_the_other_components_running(
    play_on_sockets, monkeypatch
):
    """A missing namespace ended the whole process as a defect."""
    monkeypatch.setattr(webhook, "REFRESH_SECONDS", 0.02)

    async def scenario(stage: Stage) -> None:
        async with stage.running() as actor:
            admission = make_admission(actor.site)
            actor.line.answer = lambda request: (
                status(404, "NotFound") if request.path.endswith("/secrets") else None
            )
            serving = asyncio.ensure_future(admission.run())
            await stage.wait_for(lambda: _asks_for_a_namespace(admission))
            assert not serving.done()
            actor.line.answer = lambda request: None
            await stage.wait_for(lambda: _is_well(admission))
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    play_on_sockets(scenario)


async def _asks_for_a_namespace(admission: webhook.AdmissionWebhook) -> bool:
    return "kubectl create namespace" in admission.health().get("certificate", "")


async def _is_well(admission: webhook.AdmissionWebhook) -> bool:
    return admission.port is not None and not admission.health()


async def _is_ill(admission: webhook.AdmissionWebhook) -> bool:
    return "webhookconfigurations" in admission.warnings().get("certificate", "")


async def _works(probe: AdmissionProbe) -> bool:
    return await probe.problem() is None


async def _call(probe: AdmissionProbe, answers: list[str | None], stop: asyncio.Event) -> None:
    while not stop.is_set():
        answers.append(await probe.problem())


async def _until(answers: list[str | None], count: int) -> None:
    while len(answers) < count:  # noqa: ASYNC110 - a list tells nobody
        await asyncio.sleep(0.01)


async def _serial(port: int | None) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return str(hash(found))


async def _serves_another(port: int | None, serial: str) -> bool:
    return await _serial(port) != serial
