"""The lab answers what the real kube-apiserver answered when the recording was made."""

import asyncio

import pytest

from tests.lab.answers import Reply, Script, Step, encode_body, play, request_headers
from tests.lab.recording import answers_of_1_37, recorded
from tests.lab.scripts import SCRIPTS
from trimtab.clock import VirtualClock
from trimtab.model.core.server_rules import KUBERNETES_1_36, KUBERNETES_1_37, ServerRules
from trimtab_lab.apiserver.server import Server


async def on_the_lab(clock: VirtualClock, script: Script, rules: ServerRules):
    async with Server(clock, seed=1, rules=rules) as server:

        async def send(step: Step, namespace: str, kept: str) -> Reply:
            response = await server.request(
                step.method,
                step.path.replace("{ns}", namespace),
                step.query,
                request_headers(step, server.tokens.admin, namespace, kept),
                encode_body(step, namespace, kept),
            )
            body = response.body
            if response.stream is not None:
                body = b"".join([chunk async for chunk in response.stream])
            return Reply(response.status, body)

        return await play(script, send, asyncio.sleep, "scripted")


@pytest.mark.parametrize("rules", [KUBERNETES_1_36, KUBERNETES_1_37], ids=lambda rules: rules.version)
@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_the_lab_answers_like_the_real_server(script, rules):
    clock = VirtualClock()
    answers = clock.run(on_the_lab(clock, script, rules))
    wanted = answers_of_1_37() if rules is KUBERNETES_1_37 else recorded()
    for step, answer, want in zip(script.steps, answers, wanted[script.name], strict=True):
        assert answer == want, f"{step.method} {step.path} {step.query} {step.body}"
