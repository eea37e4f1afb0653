"""S9 and S10: whom the running adapter believes, and over which connection."""

import ssl

import aiohttp
import pytest
import trustme

from tests.adapter.conftest import CUSTOM, EXTERNAL, HPA, Caller, until

QUEUE = f"{CUSTOM}/namespaces/default/statefulsets.apps/foo/queue_length"
ADMIN = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}


async def test_headers_without_a_certificate_are_nobody(stranger, cluster):
    status, body = await stranger.get(f"{EXTERNAL}/namespaces/x/m", ADMIN)
    assert (status, body["reason"]) == (401, "Unauthorized")
    assert cluster.access_reviews == []


async def test_a_certificate_of_an_unknown_authority_does_not_get_through_the_handshake(adapter):
    caller = Caller(adapter, trustme.CA().issue_cert(common_name="front-proxy-client"))
    with pytest.raises(aiohttp.ClientError):
        await caller.get(QUEUE, ADMIN)
    await caller.close()


@pytest.mark.parametrize("who", ["a user of the cluster", "another name of the front proxy's authority"])
async def test_a_certificate_that_is_not_the_front_proxys_lets_no_header_speak(adapter, front, who):
    issuer, name = (
        (front.users, "front-proxy-client") if who == "a user of the cluster" else (front.authority, "else")
    )
    caller = Caller(adapter, issuer.issue_cert(common_name=name))
    assert (await caller.get(QUEUE, ADMIN))[0] == 401
    await caller.close()


async def test_a_front_proxy_below_an_intermediate_authority_is_believed(adapter, front, cluster):
    """RH-L5: the cluster publishes the root alone, and the front proxy sends what leads to it, as Go expects."""
    intermediate = front.authority.create_child_ca()
    caller = Caller(adapter, intermediate.issue_cert(common_name="front-proxy-client"))
    assert (await caller.get(QUEUE, HPA))[0] == 200
    assert cluster.access_reviews[-1]["user"] == "hpa"
    await caller.close()


@pytest.mark.parametrize(
    "sends", ["the users' intermediate", "the users' intermediate and the front proxy's root"]
)
async def test_an_intermediate_of_another_authority_lets_no_header_speak(adapter, front, sends):
    leaf = front.users.create_child_ca().issue_cert(common_name="front-proxy-client")
    if "root" in sends:
        leaf.cert_chain_pems.append(front.authority.cert_pem)
    caller = Caller(adapter, leaf)
    assert (await caller.get(QUEUE, ADMIN))[0] == 401
    await caller.close()


async def test_the_front_proxy_says_who_asks(proxy, cluster):
    headers = {**HPA, "X-Remote-Extra-Scopes%2Fa": "read"}
    assert (await proxy.get(QUEUE, headers))[0] == 200
    spec = cluster.access_reviews[-1]
    assert spec["user"] == "hpa"
    assert spec["groups"] == ["system:authenticated"]
    assert spec["extra"] == {"scopes/a": ["read"]}


async def test_everybody_who_is_known_is_authenticated_also_where_the_front_proxy_names_no_group(
    proxy, cluster
):
    await proxy.get("/apis/custom.metrics.k8s.io/v1beta2", {"X-Remote-User": "system:kube-aggregator"})
    assert cluster.access_reviews[-1]["groups"] == ["system:authenticated"]
    anonymous = {"X-Remote-User": "system:anonymous", "X-Remote-Group": "system:unauthenticated"}
    await proxy.get("/apis/custom.metrics.k8s.io/v1beta2", anonymous)
    assert cluster.access_reviews[-1]["groups"] == ["system:unauthenticated"]


async def test_the_front_proxy_without_a_user_is_nobody(proxy):
    assert (await proxy.get(QUEUE))[0] == 401


async def test_a_token_that_the_cluster_knows_is_its_user(stranger, cluster):
    cluster.tokens["s3cret"] = {"username": "ann", "groups": ["dev"], "uid": "7"}
    assert (await stranger.get(QUEUE, {"Authorization": "Bearer s3cret", **ADMIN}))[0] == 200
    assert (cluster.access_reviews[-1]["user"], cluster.access_reviews[-1]["groups"]) == (
        "ann",
        ["dev", "system:authenticated"],
    )


@pytest.mark.parametrize("value", ["Bearer wrong", "Bearer ", "Basic YWRtaW46YWRtaW4=", "s3cret"])
async def test_any_other_authorization_is_nobody(stranger, cluster, value):
    cluster.tokens["s3cret"] = {"username": "ann"}
    assert (await stranger.get(QUEUE, {"Authorization": value}))[0] == 401


async def test_a_token_cannot_be_judged_while_the_review_api_is_down(stranger, cluster):
    cluster.tokens["s3cret"] = {"username": "ann"}
    cluster.reviews_fail = True
    assert (await stranger.get(QUEUE, {"Authorization": "Bearer s3cret"}))[0] == 503
    cluster.reviews_fail = False
    assert (await stranger.get(QUEUE, {"Authorization": "Bearer s3cret"}))[0] == 200


async def test_a_new_front_proxy_authority_is_believed_and_the_old_one_is_not_even_on_a_live_connection(
    adapter, cluster, front, proxy
):
    assert (await proxy.get(QUEUE, HPA))[0] == 200
    fresh = trustme.CA()
    before = adapter.trust.current
    name = "extension-apiserver-authentication"
    await cluster.put("configmaps", name, "kube-system", data=front.config_map(fresh))
    await until(lambda: adapter.trust.current is not before)
    assert (await proxy.get(QUEUE, HPA))[0] == 401
    caller = Caller(adapter, fresh.issue_cert(common_name="front-proxy-client"))
    assert (await caller.get(QUEUE, HPA))[0] == 200
    await caller.close()


async def test_a_trust_that_makes_no_sense_leaves_the_last_one_in_force(adapter, cluster, proxy, caplog):
    name = "extension-apiserver-authentication"
    await cluster.put("configmaps", name, "kube-system", data={"requestheader-client-ca-file": "nonsense"})
    await until(lambda: "keeping the last trust" in caplog.text)
    assert (await proxy.get(QUEUE, HPA))[0] == 200


async def test_tls_older_than_1_2_is_refused(adapter):
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"https://localhost:{adapter.port}/readyz", ssl=old)
