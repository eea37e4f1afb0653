"""How long reviews are cached."""

import asyncio
from typing import Any

from trimtab.clock import VirtualClock
from trimtab.cluster.access_reviews import ReviewCache, ReviewFailedError


def test_an_answer_is_believed_for_ten_seconds_at_most_whatever_is_configured():
    clock = VirtualClock()
    asked = []

    async def scenario():
        cache: ReviewCache[str, Any] = ReviewCache(clock, 3600.0)

        async def ask():
            asked.append(clock.monotonic())
            return True

        for _ in range(25):
            await cache.get("ann", ask)
            await clock.sleep(1)

    clock.run(scenario())
    assert asked == [0, 10, 20]


def test_equal_questions_at_once_are_one_question_and_failures_are_not_remembered():
    clock = VirtualClock()
    asked = []

    async def scenario():
        cache: ReviewCache[str, Any] = ReviewCache(clock, 10.0)

        async def ask():
            asked.append(1)
            await clock.sleep(1)
            if len(asked) == 1:
                raise ReviewFailedError("down")
            return True

        first = await asyncio.gather(*(cache.get("ann", ask) for _ in range(5)), return_exceptions=True)
        assert all(isinstance(error, ReviewFailedError) for error in first)
        assert await cache.get("ann", ask)

    clock.run(scenario())
    assert len(asked) == 2


def test_an_asker_that_goes_away_does_not_take_the_answer_from_the_others():
    clock = VirtualClock()

    async def scenario():
        cache: ReviewCache[str, Any] = ReviewCache(clock, 10.0)

        async def ask():
            await clock.sleep(1)
            return "yes"

        gone = asyncio.ensure_future(cache.get("ann", ask))
        stays = asyncio.ensure_future(cache.get("ann", ask))
        await clock.sleep(0.5)
        gone.cancel()
        return await stays

    assert clock.run(scenario()) == "yes"
