"""Whether a quota has room for the replacement once its pod is gone."""

import pytest

from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.operator.vertical.updater.replacement import _is_quota_met

POD = wire.convert(
    {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}, Pod
)


def refusal(requested, used, limited):
    return f"pods is forbidden: exceeded quota: q, requested: {requested}, used: {used}, limited: {limited}"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(refusal("requests.cpu=1", "requests.cpu=4", "requests.cpu=4"), True, id="the same size"),
        pytest.param(
            refusal("requests.cpu=2", "requests.cpu=4", "requests.cpu=5"), True, id="just enough room"
        ),
        pytest.param(refusal("requests.cpu=2", "requests.cpu=4", "requests.cpu=4"), False, id="too large"),
        pytest.param(refusal("pods=1", "pods=3", "pods=3"), True, id="the number of pods"),
        pytest.param(
            refusal("pods=1,requests.cpu=2", "pods=3,requests.cpu=4", "pods=3,requests.cpu=4"),
            False,
            id="room for one of two",
        ),
        pytest.param(
            refusal("requests.cpu=2,pods=1", "requests.cpu=4,pods=3", "requests.cpu=4,pods=3"),
            False,
            id="room for the other of two",
        ),
        pytest.param(
            refusal("pods=1,widgets=1", "pods=3,widgets=1", "pods=3,widgets=9"),
            False,
            id="a resource that the pod does not free, second",
        ),
        pytest.param(
            refusal("widgets=1,pods=1", "widgets=1,pods=3", "widgets=9,pods=3"),
            False,
            id="a resource that the pod does not free, first",
        ),
        pytest.param(refusal("pods=1", "cpu=1", "pods=3"), False, id="use that is not known"),
        pytest.param(refusal("pods=1", "pods=3", "cpu=1"), False, id="a limit that is not known"),
        pytest.param(refusal("pods=many", "pods=3", "pods=3"), False, id="no amount"),
        pytest.param("pods is forbidden: no right", False, id="no quota"),
    ],
)
def test_a_replacement_takes_the_room_of_its_pod(text, want):
    assert _is_quota_met(text, POD) is want
