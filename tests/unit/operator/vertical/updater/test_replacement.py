"""Whether the replacement of a pod would run: its size, the room of nodes, and what the server says."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import pod, raw_pod, recommended, vpa
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.objects import Node
from trimtab.model.core.server_rules import KUBERNETES_1_36
from trimtab.model.json import wire
from trimtab.model.status import Status
from trimtab.operator.vertical.updater.replacement import (
    FREE_ROOM_UNKNOWN,
    NO_NODE_FITS,
    REFUSED,
    UNCHANGED,
    ReplacementCheck,
)

GIB = "1Gi"
BIGGER = vpa("base", recommended("2Gi", "100m"))


def node(name: str, memory: str = "4Gi", cpu: str = "4") -> Node:
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    return wire.convert(
        {"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}}, Node
    )


def refusal(kind: type[errors.ApiError], code: int, message: str = "no") -> errors.ApiError:
    return kind("creating", Status(code=code, message=message))


class World:
    """A server that answers dry runs as it is told, and nodes with pods."""

    def __init__(self, *others: Any, nodes: Any = (), answer: Any = None, **options: Any) -> None:
        self.clock = VirtualClock()
        self.is_dry_run = options.pop("is_dry_run", False)
        self.answer = answer
        self.pod = options.pop("pod", None) or pod(node="n1")
        view: Any = SimpleNamespace(
            discovery=self,
            limit_ranges=(),
            rules=Rules.TRIMTAB,
            server_rules=KUBERNETES_1_36,
            nodes=nodes or [node("n1")],
            pods=[*others, self.pod],
        )
        itself: Any = self
        self.check = ReplacementCheck(itself, view, **options)

    async def get(self, _resource: Any, name: str, namespace: str) -> Any:
        return wire.to_builtins(self.pod)

    async def find_kind(self, *_names: Any) -> Any:
        raise errors.TransportError("no discovery")

    async def create(self, _resource: Any, body: Any, _namespace: str, *, query: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or raw_pod(memory="2Gi")

    def obstacle(self, of: Any = BIGGER) -> str | None:
        found = self.clock.run(self.check.obstacle(self.pod, of))
        return None if found is None else found.reason


def test_a_replacement_of_another_size_that_fits_is_no_obstacle():
    assert World().obstacle() is None


def raw(*containers: tuple[str, str, str]) -> dict[str, Any]:
    """Make a pod of containers with a name, CPU and memory."""
    made = raw_pod(node="n1")
    made["spec"]["containers"] = [
        {"name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        for name, cpu, memory in containers
    ]
    return made


APP, LOG = ("app", "100m", GIB), ("log", "10m", "1Mi")


@pytest.mark.parametrize(
    ("made", "is_same"),
    [
        pytest.param(raw(APP, LOG), True, id="both containers the same"),
        pytest.param(raw(("app", "100m", "2Gi"), LOG), False, id="the first larger"),
        pytest.param(raw(APP, ("log", "10m", "2Mi")), False, id="the second larger"),
        pytest.param(raw(APP, ("log", "20m", "1Mi")), False, id="more CPU"),
        pytest.param(raw(APP), True, id="one container is gone"),
        pytest.param(raw(APP, LOG, ("new", "1", "1Gi")), True, id="one container is new"),
    ],
)
def test_a_replacement_of_the_same_size_is_not_worth_an_eviction(made, is_same):
    world = World(pod=wire.convert(raw(APP, LOG), type(pod())), answer=made)
    assert (world.obstacle() == UNCHANGED) is is_same


def test_in_a_dry_run_the_answer_has_no_size():
    assert World(is_dry_run=True, answer=raw_pod()).obstacle() is None


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(refusal(errors.Invalid, 422), REFUSED, id="invalid"),
        pytest.param(refusal(errors.Forbidden, 403), REFUSED, id="forbidden by a policy"),
        pytest.param(
            refusal(errors.Invalid, 422, 'a webhook says: cannot create resource "pods"'),
            REFUSED,
            id="a webhook that lacks the right itself",
        ),
        pytest.param(
            refusal(errors.Forbidden, 403, 'User "u" cannot create resource "pods"'),
            None,
            id="no right to try",
        ),
    ],
)
def test_a_refused_dry_run_is_an_obstacle_unless_we_may_not_try(answer, want):
    assert World(answer=answer).obstacle() == want


@pytest.mark.parametrize(
    "answer",
    [
        refusal(errors.ServerError, 500),
        refusal(errors.TooManyRequests, 429),
        refusal(errors.NotFound, 404),
    ],
)
def test_an_answer_that_says_nothing_about_the_pod_ends_the_attempt(answer):
    with pytest.raises(type(answer)):
        World(answer=answer).obstacle()


def other(name: str, memory: str, place: str = "n1", phase: str = "Running") -> Any:
    return pod(name, memory=memory, node=place, phase=phase, owner="StatefulSet/other")


@pytest.mark.parametrize(
    ("others", "want"),
    [
        pytest.param([], None, id="an empty node"),
        pytest.param([other("a", "2Gi")], None, id="just enough beside another pod"),
        pytest.param([other("a", "2Gi"), other("b", "1Ki")], NO_NODE_FITS, id="too much beside two"),
        pytest.param(
            [other("a", "9Gi", ""), other("b", "2Gi"), other("c", "1Ki")],
            NO_NODE_FITS,
            id="an unplaced pod first",
        ),
        pytest.param(
            [other("a", "9Gi", phase="Succeeded"), other("b", "2Gi")], None, id="a finished pod takes no room"
        ),
        pytest.param([other("a", "9Gi", "n2"), other("b", "2Gi")], None, id="a pod of another node"),
    ],
)
def test_a_replacement_takes_the_free_room_and_that_of_its_pod(others, want):
    assert World(*others).obstacle() == want
    assert World(*others, node_fit="allocatable").obstacle() is None
    assert World(*others, node_fit="none").obstacle() is None


def test_one_node_with_room_is_enough():
    full = other("a", "3Gi")
    assert World(full, nodes=[node("n1"), node("n2", "1Gi")]).obstacle() == NO_NODE_FITS
    assert World(full, nodes=[node("n1"), node("n2", "2Gi")]).obstacle() is None


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(raw_pod(memory="2Gi"), FREE_ROOM_UNKNOWN, id="more memory"),
        pytest.param(raw_pod(cpu="200m"), FREE_ROOM_UNKNOWN, id="more CPU"),
        pytest.param(raw_pod(memory="512Mi", cpu="100m"), None, id="as much CPU and less memory"),
        pytest.param(raw_pod(memory="512Mi", cpu="200m"), FREE_ROOM_UNKNOWN, id="less memory and more CPU"),
    ],
)
def test_a_larger_replacement_needs_a_view_of_all_pods(made, want):
    assert World(answer=made, sees_all_pods=False).obstacle() == want
    assert World(answer=made, sees_all_pods=False, node_fit="allocatable").obstacle() is None


def test_without_dry_runs_only_nodes_are_checked():
    assert World(creates=False, answer=refusal(errors.Invalid, 422)).obstacle() is None
    small = World(creates=False, nodes=[node("n1", "1536Mi")])
    assert small.obstacle() == NO_NODE_FITS, "with the size that our webhook would give it"


EXCEEDED = "exceeded quota: q, requested: requests.memory=2Gi, used: requests.memory=4Gi, limited: requests.memory=5Gi"
OTHER = "exceeded quota: r, requested: requests.cpu=2, used: requests.cpu=4, limited: requests.cpu=4"
QUOTA = refusal(errors.Forbidden, 403, EXCEEDED)


class Limited(World):
    """A server whose quota refuses the replacement, and answers the dry run of a resize as it is told."""

    def __init__(self, resized: Any) -> None:
        super().__init__(answer=QUOTA)
        self.resized = resized

    async def patch(self, *_names: Any, **options: Any) -> Any:
        assert (options["subresource"], options["is_dry_run"]) == ("resize", True)
        if isinstance(self.resized, Exception):
            raise self.resized
        return self.resized


@pytest.mark.parametrize(
    ("resized", "want"),
    [
        pytest.param(pod(memory="2Gi"), None, id="a resize has room"),
        pytest.param(pod(), REFUSED, id="a resize gives less"),
        pytest.param(refusal(errors.Forbidden, 403, OTHER), REFUSED, id="another quota has no room"),
        pytest.param(refusal(errors.Invalid, 422), REFUSED, id="whether there is room is not known"),
    ],
)
def test_a_larger_replacement_needs_room_in_all_quotas(resized, want):
    assert Limited(resized).obstacle() == want


def test_a_replacement_that_is_no_larger_takes_the_room_of_its_pod():
    same = Limited(AssertionError("nothing is resized"))
    assert same.obstacle(vpa("base", recommended("512Mi", "100m"))) is None


@pytest.mark.parametrize("failure", [refusal(errors.ServerError, 503), refusal(errors.TooManyRequests, 429)])
def test_a_resize_without_an_answer_ends_the_attempt(failure):
    with pytest.raises(type(failure)):
        Limited(failure).obstacle()
