"""A Lease goes with the account of the process that created it. It stayed behind when the installation was removed."""

import json

import pytest

from tests.support.asgi import AsgiTransport
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.lease import create_lease
from trimtab.cluster.resource import LEASES

ACCOUNT = {"username": "system:serviceaccount:trimtab:trimtab-updater", "uid": "u-1"}
OWNER = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "trimtab-updater", "uid": "u-1"}
BODY = {"metadata": {"name": "trimtab-updater", "annotations": {"a": "b"}}, "spec": {}}
REFUSED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden"}


def sent_by(user, *, refuses=lambda body: False, namespace="trimtab"):
    """Create a Lease as a user. Return the bodies of all Leases that were sent."""
    sent = []

    async def api(scope, receive, send):
        body = json.loads((await receive())["body"])
        is_review = scope["path"].endswith("/selfsubjectreviews")
        if is_review:
            code, answer = (201, {"status": {"userInfo": user}}) if user else (403, REFUSED)
        else:
            sent.append(body)
            code, answer = (403, REFUSED) if refuses(body) else (201, body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    clock = VirtualClock()
    client = Client(clock, AsgiTransport(api), seed=1)
    clock.run(create_lease(client, LEASES.untyped(), BODY, namespace))
    return sent


def test_the_account_of_the_process_owns_the_lease():
    (lease,) = sent_by(ACCOUNT)
    assert lease == {**BODY, "metadata": {**BODY["metadata"], "ownerReferences": [OWNER]}}


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"username": "kubernetes-admin"}, id="a user"),
        pytest.param(
            {**ACCOUNT, "username": "system:serviceaccount:other:trimtab-updater"}, id="another namespace"
        ),
        pytest.param({"username": ACCOUNT["username"]}, id="an account without a uid"),
        pytest.param({}, id="a server that does not say"),
    ],
)
def test_whoever_is_no_account_of_the_namespace_owns_nothing(user):
    """An owner in another namespace does not exist to the garbage collector, which would delete the Lease."""
    assert sent_by(user) == [BODY]


def test_a_server_that_refuses_owners_gets_the_lease_without():
    """OwnerReferencesPermissionEnforcement, which some distributions turn on, wants the right to delete it."""
    assert sent_by(ACCOUNT, refuses=lambda body: "ownerReferences" in body["metadata"])[-1] == BODY


def test_a_refusal_for_another_reason_is_an_error():
    with pytest.raises(errors.Forbidden):
        sent_by(ACCOUNT, refuses=lambda body: True)
