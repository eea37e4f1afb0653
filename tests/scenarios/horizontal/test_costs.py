"""What a cycle with a write costs: one request for the usage of all, and one write for each status that changed."""

from collections import Counter

from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.horizontal.test_economy import EVERYWHERE, WORKLOADS, decided, three_namespaces

ROUNDS = 6


def test_usage_that_moves_costs_one_list_and_one_patch_per_hpa(play_lab):
    """Every answer is decoded once, so this bounds decodings per cycle as well; events and scales are not due here."""

    async def scenario(stage: Stage) -> None:
        async with three_namespaces(stage) as (actor, _):
            await stage.steps(actor, 2)
            sent, (total, _) = len(actor.line.sent), decided(actor)
            for number in range(ROUNDS):
                stage.use_cpu(**dict.fromkeys(WORKLOADS, f"{51 + number % 2}m"))  # 2 and 4 % above the target
                await stage.step(actor)
            asked = [one for one in actor.line.sent[sent:] if ("watch", "true") not in one.query]
            counts = Counter((one.method, one.path.rpartition("/")[2]) for one in asked)
            assert counts == {
                ("GET", EVERYWHERE.rpartition("/")[2]): ROUNDS,
                ("PATCH", "status"): ROUNDS * len(WORKLOADS),
            }
            assert decided(actor)[0] - total == ROUNDS * len(WORKLOADS)

    play_lab(scenario)
