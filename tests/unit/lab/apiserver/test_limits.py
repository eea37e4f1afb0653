"""What the server refuses before it looks closer, and what it never stores twice."""

import pytest

from tests.unit.lab.api import CONFIG_MAPS, DEPLOYMENTS, PODS, RefusedError, config_map, pod, running
from trimtab.clock import VirtualClock
from trimtab_lab.apiserver.asgi import ApiServerApp
from trimtab_lab.apiserver.server import Server
from trimtab_lab.serve import ServedLab


def nested(depth):
    return b'{"metadata":{"name":"deep"},"data":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        pytest.param(b"{" + b" " * 3_145_728 + b"}", "application/json", 413, id="more than 3 MiB"),
        pytest.param(nested(150), "application/json", 400, id="nested deeper than 100"),
        pytest.param(b"[" * 100_000, "application/json", 400, id="a deep bomb"),
        pytest.param(b"\xff\xfe", "application/json", 400, id="not text"),
        pytest.param(
            b"a: &a [1]\nb: [" + b"*a," * 200 + b"]", "application/yaml", 400, id="too many YAML aliases"
        ),
        pytest.param(
            b"!!python/object/apply:os.system ['x']",
            "application/yaml",
            400,
            id="a YAML tag that would run code",
        ),
        pytest.param(
            b"k8s\x00\x0a\xff\xff", "application/vnd.kubernetes.protobuf", 400, id="broken protobuf"
        ),
        pytest.param(b"<x/>", "application/xml", 415, id="another format"),
    ],
)
async def test_a_body_is_refused(body, media, status):
    async with running() as api:
        with pytest.raises(RefusedError) as refused:
            await api.call("POST", CONFIG_MAPS, body, media=media)
        assert refused.value.status == status


@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param(
            "labelSelector=" + "%2C".join(f"k{i}%3Dv" for i in range(101)), 400, id="101 label requirements"
        ),
        pytest.param(
            "fieldSelector=" + "%2C".join("metadata.name%3Dv" for _ in range(101)),
            400,
            id="101 field requirements",
        ),
        pytest.param("&".join(f"a{i}=b" for i in range(500)), 400, id="500 query options"),
        pytest.param("limit=-1", 400, id="a negative limit"),
        pytest.param("watch=perhaps", 400, id="a boolean that is none"),
    ],
)
async def test_a_query_is_refused(query, status):
    async with running() as api:
        with pytest.raises(RefusedError) as refused:
            await api.get(CONFIG_MAPS, query)
        assert refused.value.status == status


async def test_yaml_bodies_are_read_and_dates_stay_text():
    async with running() as api:
        body = b"metadata: {name: y}\ndata: {day: 2026-01-01, flag: 'yes'}\n"
        made = await api.call("POST", CONFIG_MAPS, body, media="application/yaml")
        assert made["data"] == {"day": "2026-01-01", "flag": "yes"}


async def test_a_patch_that_changes_nothing_writes_nothing():
    async with running() as api:
        made = await api.create(CONFIG_MAPS, config_map("a", {"x": "1"}))
        again = await api.merge(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"x": "1"}}})
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_dry_run_stores_nothing_and_takes_no_version():
    async with running() as api:
        version = api.server.store.version
        await api.create(CONFIG_MAPS, config_map("a"), "dryRun=All")
        assert not await api.exists(f"{CONFIG_MAPS}/a")
        assert api.server.store.version == version


async def test_generated_names_are_fresh():
    async with running() as api:
        names = {
            (await api.create(PODS, {**pod("x"), "metadata": {"generateName": "web-"}}))["metadata"]["name"]
            for _ in range(20)
        }
        assert len(names) == 20
        assert all(name.startswith("web-") and len(name) == 9 for name in names)


async def test_what_was_read_can_be_changed_without_changing_the_store():
    async with running() as api:
        await api.create(CONFIG_MAPS, config_map("a", {"x": "1"}))
        entry = api.server.store.get("configmaps", "default/a")
        assert entry is not None
        entry.decoded()["metadata"]["labels"]["x"] = "2"
        assert entry.decoded()["metadata"]["labels"] == {"x": "1"}


async def test_generation_counts_changes_of_the_spec_only():
    async with running() as api:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await api.create(
            DEPLOYMENTS,
            {
                "metadata": {"name": "web"},
                "spec": {"selector": {"matchLabels": labels}, "template": template},
            },
        )
        path = f"{DEPLOYMENTS}/web"
        assert (await api.merge(path, {"metadata": {"labels": {"a": "b"}}}))["metadata"]["generation"] == 1
        assert (await api.merge(f"{path}/status", {"status": {"replicas": 3}}))["metadata"]["generation"] == 1
        assert (await api.merge(path, {"spec": {"replicas": 3}}))["metadata"]["generation"] == 2


def test_the_same_seed_gives_the_same_bytes():
    def run():
        clock = VirtualClock()

        async def scenario():
            async with running(clock) as api:
                await api.create(PODS, {**pod("x"), "metadata": {"generateName": "web-"}})
                await api.create(
                    "/apis/batch/v1/namespaces/default/jobs",
                    {
                        "metadata": {"name": "j"},
                        "spec": {
                            "template": {
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [{"name": "c", "image": "i"}],
                                }
                            }
                        },
                    },
                )
                await clock.sleep(60)
                await api.merge("/apis/batch/v1/namespaces/default/jobs/j/status", {"status": {"active": 1}})
                resources = api.server.store.resources()
                return [(objects.resource, [entry.raw for entry in objects.all()]) for objects in resources]

        return clock.run(scenario())

    assert run() == run()


def test_a_seeded_lab_refuses_to_listen():
    with pytest.raises(ValueError, match="predictable tokens"):
        ServedLab(Server(VirtualClock(), seed=1))


async def asgi_call(app, headers, method="GET", body=b""):
    sent = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": "/version",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param([(b"host", b"lab:1")], 200, id="the lab's own name"),
        pytest.param([(b"host", b"evil.example:1")], 421, id="another Host, as DNS rebinding sends"),
        pytest.param([], 421, id="no Host"),
        pytest.param(
            [(b"host", b"lab:1"), (b"origin", b"https://evil.example")], 403, id="a page of another origin"
        ),
        pytest.param([(b"host", b"lab:1"), (b"x", b"y" * 40_000)], 431, id="headers above 32 KiB"),
        pytest.param(
            [(b"host", b"lab:1"), (b"content-length", b"4000000")], 413, id="a declared body above 3 MiB"
        ),
    ],
)
async def test_what_the_socket_side_lets_in(headers, status):
    async with running() as api:
        app = ApiServerApp(api.server, frozenset({"lab:1"}))
        token = (b"authorization", f"Bearer {api.server.tokens.admin}".encode())
        seen, _ = await asgi_call(app, [*headers, token])
        assert seen == status


async def test_the_token_is_never_in_an_answer():
    async with running() as api:
        response = await api.server.request(
            "GET", "/api/v1/secrets", "", {"authorization": "Bearer " + api.server.tokens.admin}
        )
        assert api.server.tokens.admin.encode() not in response.body


async def test_fields_that_are_unknown_are_dropped_with_a_warning():
    async with running() as api:
        made = await api.create(CONFIG_MAPS, {**config_map("a"), "colour": 1})
        assert "colour" not in made
        assert api.warnings == ('unknown field "colour"',)
