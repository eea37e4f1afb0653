"""Objects spoilt at random: whatever is sent, the server answers, and never with a failure of its own."""

import json
import random

import pytest

from tests.lab.spoilt import BUILT_IN, Spoilt, spoilt_request
from tests.unit.lab.api import Api, running


async def send(api: Api, request: Spoilt):
    headers = {
        "authorization": f"Bearer {api.server.tokens.admin}",
        "content-type": request.media,
        "accept": "application/json",
    }
    path = request.path.replace("{ns}", "default")
    query = "fieldManager=x&force=true" if "apply" in request.media else "fieldManager=x"
    return await api.server.request(
        request.method, path, query, headers, request.body.replace(b"{ns}", b"default")
    )


@pytest.mark.parametrize("seed", range(4))
async def test_a_spoilt_object_is_refused_or_stored_but_never_breaks_the_server(seed):
    chance = random.Random(seed)
    async with running() as api:
        for path, obj in BUILT_IN:
            await api.create(
                path.replace("{ns}", "default"), json.loads(json.dumps(obj).replace("{ns}", "default"))
            )
        for number in range(250):
            request = spoilt_request(chance, number)
            response = await send(api, request)
            assert response.status < 500, f"{request}: {response.body!r}"
            await api.settle()
        for path, _ in BUILT_IN:
            table = {
                "authorization": f"Bearer {api.server.tokens.admin}",
                "accept": "application/json;as=Table;g=meta.k8s.io;v=v1",
            }
            assert (await api.server.request("GET", path.replace("{ns}", "default"), "", table)).status == 200
