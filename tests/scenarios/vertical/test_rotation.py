"""S8 on a real socket: pairs and authorities change under load, and no call is lost."""

import asyncio
import ssl
from dataclasses import replace
from datetime import datetime

import pytest

from tests.scenarios.line import status
from tests.scenarios.vertical.conftest import play_on_real
from tests.scenarios.vertical.stage import Stage
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
            actor.line.answer = lambda _: None
            await stage.wait_for(lambda: _serves_another(admission.port, first))
            assert admission.health() == {}
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    play_on_sockets(scenario)


async def _is_well(admission: webhook.AdmissionWebhook) -> bool:
    return admission.port is not None and not admission.health()


async def _is_ill(admission: webhook.AdmissionWebhook) -> bool:
    return "webhookconfigurations" in admission.health().get("admission", "")


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
