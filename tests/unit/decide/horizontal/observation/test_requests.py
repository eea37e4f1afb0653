"""Requests of pods: sums over containers and sidecars, pod-level requests, overhead."""

import pytest

from trimtab.decide.horizontal.observation.pods import snapshot_pod
from trimtab.decide.horizontal.observation.requests import PodRequests, pod_requests
from trimtab.model.core.pod import Pod, PodSpec
from trimtab.model.json import wire


def spec(*containers, init=(), **more):
    """Make a spec; a container is its requests, an init container `(requests, is_sidecar)`."""
    data = {
        "containers": [
            {"name": f"c{place}", "resources": {"requests": own}} for place, own in enumerate(containers)
        ],
        "initContainers": [
            {"name": f"i{place}", "resources": {"requests": own}, "restartPolicy": "Always" if side else None}
            for place, (own, side) in enumerate(init)
        ],
        **more,
    }
    return wire.convert(data, PodSpec)


def requests(made, *, gate=True):
    found = pod_requests(made, pod_level_resources=gate)
    assert isinstance(found, PodRequests)
    return found


ONE, TWO = {"cpu": "1", "memory": "1Ki"}, {"cpu": "2", "memory": "2Ki"}


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(spec(ONE), {"cpu": 1000, "memory": 1_024_000}, id="one container"),
        pytest.param(spec(ONE, TWO), {"cpu": 3000, "memory": 3_072_000}, id="containers add up"),
        pytest.param(spec(ONE, {"cpu": "1"}), {"cpu": 2000}, id="the last has no request of memory"),
        pytest.param(spec({"cpu": "1"}, ONE), {"cpu": 2000}, id="the first has no request of memory"),
        pytest.param(
            spec(ONE, init=[(TWO, True)]), {"cpu": 3000, "memory": 3_072_000}, id="a sidecar counts"
        ),
        pytest.param(
            spec(ONE, init=[(TWO, False)]),
            {"cpu": 1000, "memory": 1_024_000},
            id="an init container does not",
        ),
        pytest.param(spec(), {}, id="no containers"),
        pytest.param(
            spec(ONE, overhead={"cpu": "1"}), {"cpu": 1000, "memory": 1_024_000}, id="overhead does not count"
        ),
    ],
)
def test_without_pod_level_requests_containers_are_summed(made, want):
    for gate in (True, False):
        found = requests(made, gate=gate)
        assert (found.requests, found.is_pod_level) == (want, False)


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(spec(ONE, resources={"requests": {"cpu": "5"}}), {"cpu": 5000, "memory": 1_024_000}, id="cpu of the pod, memory of the container"),
        pytest.param(spec(ONE, resources={"requests": {"cpu": "5"}}, overhead={"cpu": "1", "memory": "1Ki", "gpu": "1"}), {"cpu": 5000, "memory": 1_024_000}, id="without overhead"),
        pytest.param(spec(ONE, {"memory": "1Ki"}, resources={"requests": {"cpu": "5"}}), {"cpu": 5000, "memory": 2_048_000}, id="containers without cpu"),
        pytest.param(spec(ONE, init=[(TWO, False)], resources={"requests": {"cpu": "5"}}), {"cpu": 5000, "memory": 2_048_000}, id="a larger init container"),
        pytest.param(spec(ONE, init=[({"memory": "1Ki"}, True), (TWO, False)], resources={"requests": {"cpu": "5"}}), {"cpu": 5000, "memory": 3_072_000}, id="beside a sidecar"),
        pytest.param(spec(ONE, init=[(TWO, False), ({"memory": "1Ki"}, True)], resources={"requests": {"cpu": "5"}}), {"cpu": 5000, "memory": 2_048_000}, id="before a sidecar"),
        pytest.param(spec(ONE, resources={"requests": {"hugepages-2Mi": "4Mi"}}), {"cpu": 1000, "memory": 1_024_000, "hugepages-2Mi": 4 * 2**20 * 1000}, id="huge pages"),
    ],
)  # fmt: skip
def test_pod_level_requests_come_before_sums(made, want):
    found = requests(made)
    assert (found.requests, found.is_pod_level) == (want, True)
    assert requests(made, gate=False).is_pod_level is False


@pytest.mark.parametrize(
    ("resource", "ours", "before"),
    [("cpu", 5000, 6000), ("memory", 1_024_000, 1_024_000), ("gpu", None, 1000)],
)
def test_kubernetes_before_1_38_adds_overhead_to_pod_level_requests(resource, ours, before):
    """Usage is that of containers: a pod that used its whole request looked less used than it was."""
    template = {
        "containers": [{"name": "app", "resources": {"requests": ONE}}],
        "overhead": {"cpu": "1", "gpu": "1"},
    }
    body = {"metadata": {"name": "web"}, "spec": template | {"resources": {"requests": {"cpu": "5"}}}}
    taken = snapshot_pod(wire.convert(body, Pod))
    assert taken.request_of(resource, adds_overhead=True) == before
    assert taken.requests.get(resource) == ours
    plain = snapshot_pod(wire.convert(body | {"spec": template}, Pod))
    assert plain.overhead == {}, "sums over containers have none, in any version"


def test_pod_level_resources_that_are_none_of_those_do_not_count():
    for own in ({"requests": {"gpu": "1"}}, {"limits": {"cpu": "1"}}):
        assert requests(spec(ONE, resources=own)).is_pod_level is False


def test_requests_per_container_are_kept():
    found = requests(spec(ONE, init=[(TWO, True), (ONE, False)]))
    assert [(part.name, part.requests["cpu"]) for part in found.containers] == [("c0", 1000), ("i0", 2000)]


def test_a_request_stops_at_the_largest_integer():
    assert requests(spec({"cpu": "1e30"})).requests == {"cpu": 2**63 - 1}
