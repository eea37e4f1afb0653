"""After a start an HPA is decided when the pods of its namespace are listed, not when all pods are."""

import asyncio

import pytest

from tests.faults.horizontal.scene import first
from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Actor, Stage
from tests.scenarios.horizontal.teams import team
from tests.support.transport import status
from trimtab.cluster.transport import Request

PLACES = [f"team-{letter}" for letter in "abcdefghijk"]
PODS_EACH = 50
"""Pods of a team. Ten teams have a page, so that the last team is on the second page."""
SLOW = 30.0


def is_second_page(request: Request) -> bool:
    return request.path == "/api/v1/pods" and "continue" in dict(request.query)


def decided(actor: Actor) -> list[str]:
    """Return the teams whose status was written."""
    return sorted({one.request.path.split("/")[-2] for one in actor.line.writes if one.is_status})


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_hpas_are_decided_while_pods_are_still_listed(failures):
    """A list that failed made all HPAs wait for the end of the next one."""

    async def scenario(stage: Stage) -> None:
        for place in PLACES:
            await team(stage, place, PODS_EACH)
            stage.metrics.set_external(place, "queue", str(100 * PODS_EACH))
        actor = Actor(stage, stage.settings(watch_namespaces=()))
        failing = first(failures, lambda one: status(504, "Timeout") if is_second_page(one) else None)
        actor.line.answer = failing
        actor.line.answers_after = lambda one: SLOW if is_second_page(one) else 0.0
        running = asyncio.ensure_future(actor.run())
        try:
            await stage.clock.sleep(SLOW - 1)
            assert "caches" in actor.operator.health()
            # The tenth team may go on on the second page.
            assert decided(actor) == PLACES[:9]
            await stage.clock.sleep(SLOW)
            assert actor.operator.health() == {}
            assert decided(actor) == PLACES
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    play_on_lab(scenario)
