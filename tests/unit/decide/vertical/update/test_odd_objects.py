"""However odd the objects in the cluster are, a loop ends and says something about every live pod."""

import json
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import (
    ALL_GATES,
    NOW,
    Recorder,
    pod,
    recommended,
    run,
    vpa,
    world,
)
from trimtab.decide.vertical.admission.patches import IN_PLACE_ANNOTATION
from trimtab.decide.vertical.admission.pod_annotations import ORIGINALS_ANNOTATION
from trimtab.decide.vertical.explain import SizingRules, explain_pod, pod_lines
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import ActionResult
from trimtab.decide.vertical.update.eviction_limits import NO_EVICTION_LIMITS
from trimtab.decide.vertical.update.loop_state import UpdaterSettings
from trimtab.decide.vertical.update.observation import (
    ObservedController,
    ObservedVPA,
    UpdateObservation,
)
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.decide.vertical.update.resize.annotation import (
    NO_RESIZE_ANNOTATION,
    RESIZE_ANNOTATION,
    read_resize_annotation,
)
from trimtab.model.core.objects import LimitRange
from trimtab.model.core.pod import Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope

HOURS = st.integers(-24, 24).map(lambda hours: (NOW + timedelta(hours=hours)).isoformat())
TIMES = st.none() | st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]) | HOURS
AMOUNTS = st.sampled_from(["0", "-1", "1m", "100m", "2", "1e3", "250Mi", "8Ei", "9223372036854775807", "1n"])
LISTS = st.dictionaries(st.sampled_from(["cpu", "memory", "", "gpu"]), AMOUNTS, max_size=3)
NAMES = st.sampled_from(["app", "app", "app", "side", "*", ""])
NUMBERS = st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([-(10**18), 10**18]))
MODES = st.sampled_from(
    [None, "", "Nonsense", "Off", "Initial", "Recreate", "Auto", "InPlaceOrRecreate", "InPlace"]
)
LABELS = st.dictionaries(st.sampled_from(["app", "role"]), st.sampled_from(["db", "leader"]), max_size=2)


def shape(**fields):
    """Make objects of which every field may be absent."""
    return st.fixed_dictionaries({}, optional=fields)


RESOURCES = shape(requests=LISTS, limits=LISTS)
CONDITIONS = shape(
    type=st.sampled_from(["PodResizePending", "PodResizeInProgress", "Ready"]),
    status=st.sampled_from(["True", "False", ""]),
    reason=st.sampled_from(["", "Deferred", "Infeasible", "Error", "Odd"]),
    lastTransitionTime=TIMES,
)
ENDED = shape(
    terminated=shape(reason=st.sampled_from(["OOMKilled", "Error"]), startedAt=TIMES, finishedAt=TIMES)
)
NOTE_TIMES = TIMES | st.sampled_from(
    ["2026-01-15T11:59:00", "2026-01-15", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", 5, ""]
)
NOTES = shape(
    vpa=st.sampled_from(["shop/a", "", "/", "a"]),
    at=NOTE_TIMES,
    refusedAt=NOTE_TIMES,
    refusals=NUMBERS | st.sampled_from([2**63, 2**64, 10**400, 1.5, True]),
    resources=st.dictionaries(NAMES, RESOURCES, max_size=2),
    endsBoost=st.booleans(),
)
CHANGES = st.dictionaries(NAMES, shape(before=RESOURCES, after=RESOURCES), max_size=2)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | AMOUNTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
TEXTS = (
    st.sampled_from(["", "app", "app, side", "App;", "{}", '{"requests":{"cpu":"1"}}', "[" * 100_000])
    | st.one_of(NOTES, CHANGES, RESOURCES, JSON).map(json.dumps)
    | st.text(max_size=20)
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        [
            "vpaObservedContainers",
            "vpaCpuStartupBoost/app",
            RESIZE_ANNOTATION,
            ORIGINALS_ANNOTATION,
            IN_PLACE_ANNOTATION,
            REFUSED_ANNOTATION,
        ]
    ),
    TEXTS,
    max_size=4,
)
OWNED = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["db-0", "db-1", "db-2"]),
        "namespace": st.just("shop"),
        "uid": st.sampled_from(["a", "b", "c"]),
        "labels": st.sampled_from([{"app": "db"}, {"app": "db", "role": "leader"}]),
        "ownerReferences": st.just([{"kind": "StatefulSet", "name": "db", "controller": True}]),
    },
    optional={"annotations": ANNOTATIONS, "creationTimestamp": TIMES},
)
CONTAINERS = st.fixed_dictionaries({"name": NAMES, "resources": RESOURCES})
STRAYS = shape(
    name=st.sampled_from(["db-0", "db-1"]),
    namespace=st.sampled_from(["shop", "other"]),
    labels=LABELS,
    ownerReferences=st.lists(
        shape(kind=st.sampled_from(["StatefulSet", "Odd"]), name=st.just("db"), controller=st.booleans()),
        max_size=2,
    ),
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.sampled_from([OWNED, OWNED, OWNED, STRAYS]).flatmap(lambda kind: kind),
        "spec": st.fixed_dictionaries({"containers": st.lists(CONTAINERS, min_size=1, max_size=3)}),
    },
    optional={
        "status": shape(
            phase=st.sampled_from(["Running", "Pending", "Odd", ""]),
            startTime=TIMES,
            conditions=st.lists(CONDITIONS, max_size=2),
            containerStatuses=st.lists(shape(name=NAMES, resources=RESOURCES, lastState=ENDED), max_size=2),
        ),
    },
)
RECOMMENDED = st.fixed_dictionaries(
    {"containerName": NAMES, "target": LISTS}, optional={"lowerBound": LISTS, "upperBound": LISTS}
)
RECOMMENDATIONS = st.fixed_dictionaries(
    {"containerRecommendations": st.lists(RECOMMENDED, min_size=1, max_size=3)}
)
BOOSTS = shape(
    cpu=shape(type=st.sampled_from(["", "Factor", "Odd"]), factor=NUMBERS, durationSeconds=NUMBERS)
)
POLICIES = shape(
    containerName=NAMES,
    mode=st.sampled_from(["Auto", "Off", "Odd"]),
    minAllowed=LISTS,
    maxAllowed=LISTS,
    controlledValues=st.sampled_from(["RequestsOnly", "RequestsAndLimits", "Odd"]),
    controlledResources=st.lists(st.sampled_from(["cpu", "memory"]), max_size=2),
    startupBoost=BOOSTS,
)
TARGETS = st.sampled_from(["StatefulSet", "StatefulSet", "Odd"]).map(
    lambda kind: {"kind": kind, "name": "db"}
)
REQUIREMENTS = shape(
    resources=st.lists(st.sampled_from(["cpu", "gpu"]), max_size=2),
    changeRequirement=st.sampled_from(["TargetHigherThanRequests", "Odd"]),
)
VPAS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": st.sampled_from("abc"), "namespace": st.just("shop")}),
        "spec": st.fixed_dictionaries(
            {"targetRef": TARGETS},
            optional={
                "vpaScope": st.sampled_from(["leader", "absent", ""]).map(lambda name: {"name": name}),
                "updatePolicy": shape(
                    updateMode=MODES,
                    minReplicas=NUMBERS,
                    evictAfterOOMSeconds=NUMBERS,
                    evictionRequirements=st.lists(REQUIREMENTS, max_size=2),
                ),
                "resourcePolicy": shape(containerPolicies=st.lists(POLICIES, max_size=2)),
                "startupBoost": BOOSTS,
            },
        ),
        "status": st.fixed_dictionaries(
            {"recommendation": RECOMMENDATIONS}, optional={"observedGeneration": NUMBERS}
        ),
    }
)
SCOPES = shape(
    podSelector=shape(
        matchLabels=LABELS,
        matchExpressions=st.lists(
            shape(key=st.sampled_from(["role", "-bad-"]), operator=st.sampled_from(["In", "Exists", "Odd"])),
            max_size=1,
        ),
    ),
    nodeSelector=shape(matchLabels=LABELS),
)
ITEMS = shape(type=st.sampled_from(["Container", "Pod", "Odd"]), min=LISTS, max=LISTS, default=LISTS)
SELECTORS = st.sampled_from(["app=db", "app=db", "app=db", "", "not a selector (", None])
BOLD = UpdaterSettings(min_replicas=1, skips_budget_in_place=True, eviction_limits=NO_EVICTION_LIMITS)


@settings(max_examples=80)
@given(
    pods=st.lists(PODS, min_size=1, max_size=3),
    vpas=st.lists(st.tuples(VPAS, SELECTORS), min_size=1, max_size=3),
    scope=SCOPES,
    items=st.lists(ITEMS, max_size=2),
    replicas=st.sampled_from([1, 2, 3]) | NUMBERS,
    outcome=st.sampled_from(list(ActionResult)),
)
def test_no_object_stops_the_others(pods, vpas, scope, items, replicas, outcome):
    metadata = {"name": "leader", "namespace": "shop"}
    seen = UpdateObservation(
        vpas=tuple(
            ObservedVPA(vpa=wire.convert(data, VerticalPodAutoscaler), selector=text) for data, text in vpas
        ),
        scopes=(wire.convert({"metadata": metadata, "spec": scope}, VPAScope),),
        pods=tuple(wire.convert(data, Pod) for data in pods),
        controllers={
            "StatefulSet/shop/db": ObservedController(replicas=replicas),
            "Odd/shop/db": ObservedController(is_scalable=False),
        },
        limit_ranges=(wire.convert({"metadata": metadata, "spec": {"limits": items}}, LimitRange),),
    )
    gates = FeatureGates(
        vpa_selector_refinement=True, in_place=True, per_vpa_config=True, cpu_startup_boost=True
    )
    for rules in (Rules.TRIMTAB, Rules.VPA_1_8):
        api = Recorder(db_0=outcome, db_1=outcome)
        _, result = run(seen, gates=gates, rules=rules, api=api, settings=BOLD)
        assert {entry.pod for entry in result.pod_results} == {member.metadata.key for member in seen.pods}
        _, again = run(seen, result.state, gates=ALL_GATES, rules=rules)
        assert len(again.pod_results) == len(result.pod_results)
        for member in seen.pods:
            sizing = SizingRules(rules=rules)
            assert pod_lines(explain_pod(member, seen.index(gates, rules), seen.owners(), {}, sizing))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"at": "2026-01-15T11:59:00"}, id="a time without a zone"),
        pytest.param({"refusedAt": "2026-01-15T11:59:00"}, id="a refusal without a zone"),
        pytest.param({"refusals": 2**64 - 1}, id="more refusals than can be written again"),
        pytest.param({"refusals": -1}, id="fewer refusals than none"),
    ],
)
def test_a_note_that_cannot_be_used_is_none_and_other_pods_go_on(fields):
    """Anybody who may annotate a pod could stop the updater for the whole cluster."""
    note = {"vpa": "shop/base", "at": NOW.isoformat(), "resources": {}, **fields}
    odd = pod("db-0", annotations={RESIZE_ANNOTATION: json.dumps(note)})
    assert read_resize_annotation(odd) == NO_RESIZE_ANNOTATION
    seen = world([vpa("base", recommended("4Gi"))], [odd, pod("db-1"), pod("db-2")])
    assert run(seen)[0] == [("evict", "db-0")]
