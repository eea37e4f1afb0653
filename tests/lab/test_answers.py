"""The lab answers what the real kube-apiserver answered when the recording was made."""

import asyncio

import pytest

from tests.lab.answers import Reply, Script, Step, encode_body, play, request_headers
from tests.lab.recording import answers_of_1_37, recorded
from tests.lab.scripts import SCRIPTS
from trimtab.clock import VirtualClock
from trimtab.model.core.server_rules import KUBERNETES_1_36, KUBERNETES_1_37, ServerRules
from trimtab_lab.apiserver.server import Server


async def on_the_lab(clock: VirtualClock, script: Script, rules: ServerRules = KUBERNETES_1_36):
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


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_the_lab_answers_like_the_real_server(script):
    clock = VirtualClock()
    answers = clock.run(on_the_lab(clock, script))
    for step, answer, wanted in zip(script.steps, answers, recorded()[script.name], strict=True):
        assert answer == wanted, f"{step.method} {step.path} {step.query} {step.body}"


BY_RULES = {
    "autoscalers with impossible bounds",
    "autoscalers in both versions",
    "dependents follow their owner",
    "resizes that would change more than sizes",
    "what a status write may change besides the status",
}
"""The scripts whose answers differ in 1.37 by a rule that the lab has."""


@pytest.mark.parametrize("name", sorted(BY_RULES))
def test_the_lab_answers_like_a_server_of_1_37_by_its_rules(name):
    script = next(script for script in SCRIPTS if script.name == name)
    clock = VirtualClock()
    answers = clock.run(on_the_lab(clock, script, KUBERNETES_1_37))
    wanted = answers_of_1_37()[name]
    assert wanted != recorded()[name]
    for step, answer, want in zip(script.steps, answers, wanted, strict=True):
        assert answer == want, f"{step.method} {step.path} {step.query} {step.body}"
