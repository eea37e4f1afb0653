"""Owners of kinds that are not watched are read once, however many pods ask at the same time."""

import asyncio

from tests.scenarios.whole_process import DATABASES, Objects, Process, play
from tests.support.objects import owner_of, pod

PODS_AT_ONCE = 200


def test_reviews_of_many_pods_of_one_owner_read_it_once():
    async def scenario(process: Process) -> None:
        objects = Objects(process, ["shop"])
        await objects.create_namespace("shop")
        database = await objects.foreign_database("shop")
        owners = [owner_of(DATABASES.api_version, "Database", database)]
        process.line.sent.clear()
        process.line.answers_after = lambda request: 1.0 if "/databases/" in request.path else 0.0

        async def review(number: int) -> None:
            labels = {"app": "db"}
            await process.review(pod(f"db-{number}", namespace="shop", labels=labels, owners=owners))

        reviews = [asyncio.ensure_future(review(number)) for number in range(PODS_AT_ONCE)]
        await process.clock.sleep(0.5)
        reviews.pop(0).cancel()  # the API server gave up; the others still get their answer
        await asyncio.gather(*reviews)
        reads = [request.path for request in process.line.sent if "/databases/" in request.path]
        name = database["metadata"]["name"]
        path = f"/apis/example.com/v1/namespaces/shop/databases/{name}"
        assert reads == [path, f"{path}/scale"]

    play(scenario)
